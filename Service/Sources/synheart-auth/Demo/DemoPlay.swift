import AuthContract
import AuthService
import SoftwareDevice
import SynheartAuth

/// The steps of the demo and their expected results.
struct DemoPlay {
    let cast: DemoCast
    let service: AuthService

    func run() async throws {
        try title("A service, an app, two phones")
        try fact("service", "\(cast.url)  (SQLite, nothing else)")
        try fact("app", "\(cast.appID), channel staging, trusting a test Apple and a test Google of its own")
        try await iPhone()
        try await android()
        try title("As it must be.")
    }

    private func iPhone() async throws {
        let phone = try cast.iPhone()
        try title("1. Register: challenge, key, attestation")
        let row = try await register(phone)
        try fact("receipt", row.appAttest?.receiptOutcome ?? "none")

        try title("2. Sign a request; the service verifies it")
        let headers = try await phone.http.sign(.status)
        for header in headers { try fact(header.name, header.value) }
        try await expect(200, "verified", .status, headers, phone)

        try title("3. Replay it: refused")
        try await expect(409, "NONCE_REPLAY", .status, headers, phone)
        try note("with a fresh nonce, which scheme 1 does not sign: refused all the same, by the signature's r value")
        try await expect(
            409, "NONCE_REPLAY", .status,
            headers.map { header in
                header.name == HeaderName.nonce ? (header.name, RandomUUID(from: SystemRandom()).text) : header
            }, phone)
        try note("with another path under the same signature")
        try await expect(401, "INVALID_SIGNATURE", .device, headers, phone)

        try title("4. Rotate the key")
        let rotation = try await asking {
            try await phone.device.sdk.rotateKey(appID: cast.appID.text)
        }
        try fact("effective at", rotation.effectiveAt.iso8601)
        try fact("key", try await service.administration.show(row.deviceID, of: cast.appID)?.key.thumbprint ?? "?")
        try await expect(200, "signed by the new key: verified", .status, try await phone.http.sign(.status), phone)

        try title("5. Revoke the device")
        guard
            try await service.administration.revoke(
                row.deviceID, of: cast.appID, reason: "lost phone", actor: "demo")
        else { throw CommandFailure(.refused, "not revoked") }
        try await expect(403, "DEVICE_REVOKED", .status, try await phone.http.sign(.status), phone)
    }

    private func android() async throws {
        try title("6. An Android phone: Play Integrity token, key attestation")
        let phone = try cast.android("android")
        let row = try await register(phone)
        try fact("labels", row.assurance.labels.joined(separator: ", "))
        try await expect(200, "verified", .status, try await phone.http.sign(.status), phone)
        try note(
            "another one whose boot loader is unlocked, vouched for by Play all the same: refused by its key attestation"
        )
        try await expectRefusal(try cast.android("unlocked", isUnlocked: true))
    }

    private func register(_ phone: DemoPhone) async throws -> DeviceRecord {
        let registration = try await asking {
            try await phone.device.sdk.registerDevice(appID: cast.appID.text)
        }
        let id = try DeviceID(registration.deviceId)
        guard let row = try await service.administration.show(id, of: cast.appID) else {
            throw CommandFailure(.refused, "the service has no such device")
        }
        try fact("device id", "\(id), \(registration.status.rawValue)")
        try fact("key", "P-256, thumbprint \(row.key.thumbprint)")
        try fact("assurance", "app: \(row.assurance.app.rawValue), key: \(row.assurance.key.rawValue)")
        return row
    }

    private func expectRefusal(_ phone: DemoPhone) async throws {
        do {
            _ = try await phone.device.sdk.registerDevice(appID: cast.appID.text)
        } catch let error as SynheartAuthError {
            try fact("\(Route.register.method) \(Route.register.rawValue)", error.code.text)
            guard error.code == .attestationFailed else { throw CommandFailure(.refused, "expected a refusal") }
            return
        }
        throw CommandFailure(.refused, "expected a refusal")
    }

    private func expect(
        _ status: Int, _ meaning: String, _ route: Route, _ headers: [(name: String, value: String)],
        _ phone: DemoPhone
    ) async throws {
        let answer = try await phone.http.send(route, headers: headers)
        let isExpected = answer.status == status && (answer.code == nil || answer.code == meaning)
        try fact("\(route.method) \(route.rawValue)", "\(answer.status) \(answer.code ?? meaning)")
        guard isExpected else { throw CommandFailure(.refused, "expected \(status) \(meaning)") }
    }

    private func title(_ text: String) throws { try StandardOutput.print("\n\(text)") }
    private func note(_ text: String) throws { try StandardOutput.print("   \(text)") }
    private func fact(_ name: String, _ value: String) throws {
        try StandardOutput.print("   \(name.padded(to: 24)) \(value)")
    }
}
