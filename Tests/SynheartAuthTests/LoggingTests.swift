import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

@Suite struct LoggingTests {
    @Test("no flow logs a signature, body, proof, key, clock offset or plain device id")
    func secrets() async throws {
        let phone = Phone()
        phone.clock.setError(.milliseconds(4_567_000))
        let sdk = try phone.launch()
        await phone.service.refuse(.register, .internalError)
        phone.attestation.fail(.refused)
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        _ = try await phone.signAndVerify(sdk)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        _ = try? await sdk.rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(3600))
        try await sdk.rotateKey(appID: Phone.app)
        await phone.service.steal(id)
        _ = try? await sdk.rotateKey(appID: Phone.app)
        let record = try phone.record()
        let privateKeys = phone.keys.privateKeys
        phone.keys.lose()
        _ = try? await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .keyLost)

        var output = ""
        for entry in phone.logger.entries { dump(entry, to: &output) }
        let offset = record.clockOffset.milliseconds
        #expect(offset != 0)
        var secrets = [id, String(offset), String(abs(offset)), "a\":1", record.key?.thumbprint ?? "?", "handle-"]
        secrets += privateKeys.map { $0.base64EncodedString() }
        for request in await phone.service.requests {
            secrets += request.headers.lines.filter { $0.name.hasPrefix("X-Synheart") }.map(\.value).filter {
                $0.count > 4
            }
            if let body = try? RegisterRequest(parsing: request.body) {
                secrets += [body.publicKeyText, body.proof ?? "?", Base64.standard.encode(body.challenge)]
                secrets.append(Base64.standard.encode(body.keyProof ?? [1, 2, 3, 4, 5]))
            }
            if let body = try? RotateKeyRequest(parsing: request.body) { secrets.append(body.newPublicKeyText) }
        }
        #expect(phone.logger.entries.count > 15 && secrets.count > 30)
        for secret in secrets { #expect(!output.contains(secret), "logged \(secret)") }
        // The allowed values are in the log.
        let hashed = HashedDeviceID(try DeviceID(id)).description
        #expect(output.contains(Phone.app) && output.contains(hashed))
        let entries = phone.logger.entries
        #expect(entries.contains { $0.code == .rotationFailed } && entries.contains { $0.event == .rotationFinished })
        #expect(entries.contains { $0.duration ?? .zero > .zero } && entries.contains { $0.transition != nil })
    }

    @Test("errors never carry the request or the record")
    func errors() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error.map { "\($0)".contains(id) } == false)
    }

    @Test("an entry's line has everything that the entry has")
    func line() throws {
        let device = HashedDeviceID(try DeviceID("8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11"))
        let entry = LogEntry(
            level: .warning, event: .rotationFailed, appID: try AppID(Phone.app), device: device, code: .rotationFailed,
            transition: StateTransition(from: .registering, to: .registered), duration: .milliseconds(12))
        #expect(
            entry.description
                == "rotationFailed app=\(Phone.app) device=\(device) code=ROTATION_FAILED registering -> registered 12 ms"
        )
    }

    @Test func `a device is logged as the first 16 digits of its id's SHA-256`() throws {
        // printf 00000000-0000-4000-8000-000000000001 | sha256sum
        let hash = HashedDeviceID(try DeviceID("00000000-0000-4000-8000-000000000001"))
        #expect(hash.description == "11e594f481958c10")
    }
}
