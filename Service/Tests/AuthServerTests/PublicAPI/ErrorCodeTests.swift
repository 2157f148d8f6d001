import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Every code of the contract's table has its status. All codes but `INTERNAL_ERROR` are produced over HTTP. If a code is added,
/// this file does not compile until it produces that code.
@Suite struct ErrorCodeTests {
    @Test(arguments: ErrorCode.allCases) func `every code is reachable`(code: ErrorCode) async throws {
        try await TestServer.with { server in
            let response = try #require(try await Self.produce(code, at: server))
            #expect(response.code == code.rawValue, "\(response.text)")
            #expect(response.status == code.httpStatus)
            #expect(response.json["message"]?.string?.isEmpty == false)
            let demand = response.value(HeaderName.assertion)
            #expect(demand == (code == .assertionRequired ? #"required; prefix="/v1/pay""# : nil))
            #expect(response.json["request_id"]?.string == response.value("X-Request-ID"))
            #expect(response.json["server_timestamp"]?.integer == server.clock.now.seconds)
            if [429, 503].contains(response.status) {
                #expect(response.value("Retry-After").flatMap { Int($0) }.map { (1...300).contains($0) } == true)
            }
        }
    }

    private static func produce(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse? {
        switch code {
        case .invalidRequest: try await server.send("GET", Route.status.rawValue)
        case .notFound: try await server.send("GET", "/nowhere")
        case .methodNotAllowed: try await server.send("GET", Route.token.rawValue)
        case .payloadTooLarge:
            try await server.send(
                "POST", Route.challenge.rawValue, [("Content-Type", "application/json")],
                body: [UInt8](repeating: 0x20, count: 65_537))
        case .unsupportedMediaType: try await server.send("POST", Route.challenge.rawValue, body: [])
        case .unknownApp: try await server.post(.challenge, ["app_id": "com.example.nobody"])
        case .invalidChallenge, .challengeExpired, .invalidAttestation, .providerUnavailable, .devModeNotAllowed,
            .rateLimited:
            try await refusedRegistration(code, at: server)
        case .notRegistered, .invalidSignature, .clockSkew, .nonceReplay, .unsupportedSigVersion, .invalidAssertion,
            .misdirectedRequest:
            try await refusedRequest(code, at: server)
        case .deviceRevoked, .devicePending, .keyExpired, .rotationFailed, .attestationRequired, .serviceUnavailable:
            try await refusedState(code, at: server)
        case .assertionRequired, .unauthorized, .forbidden: try await refusedQuestion(code, at: server)
        case .conflict, .preconditionFailed: try await refusedChange(code, at: server)
        case .internalError: try await internalError(at: server)
        }
    }

    private static func change(
        _ server: TestServer, _ change: (inout JSONObject) -> Void
    ) async throws {
        var record = TestServer.record
        change(&record)
        #expect(try await server.service.apps.change(AppRecord(JSONFields(.object(record))), actor: "test"))
    }

    private static func refusedRegistration(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse {
        switch code {
        case .rateLimited:
            try await change(server) { $0["registration"] = ["approval": "manual", "maximum_pending": 0] }
        case .devModeNotAllowed: try await change(server) { $0["development_integrity_allowed"] = false }
        case .providerUnavailable:
            try await change(server) {
                $0["android"] = [
                    "packages": ["com.example.app"],
                    "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                    "play_integrity": [
                        "service_account": [
                            "client_email": "a@example.com", "private_key": "key", "token_uri": "https://example.com",
                        ]
                    ],
                ]
            }
        default: break
        }
        return try await TestDevice.register(P256.Signing.PrivateKey(), at: server) { body in
            switch code {
            case .invalidChallenge:
                body["challenge"] = .string(Base64.standard.encode([UInt8](repeating: 1, count: 32)))
            case .challengeExpired: server.clock.advance(91)
            case .invalidAttestation: body["proof"] = "AAAA"
            case .providerUnavailable:
                body["platform"] = "android"
                body["proof"] = .string(Base64.url.encode([UInt8](repeating: 1, count: 64)))
            default: break
            }
        }.0
    }

    private static func refusedRequest(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse {
        var device = try await TestDevice.register(at: server)
        if code == .notRegistered {
            device = TestDevice(key: device.key, id: DeviceID(from: SystemRandom()).text)
        }
        let path = code == .invalidSignature ? "/another" : Route.status.rawValue
        if code == .misdirectedRequest {
            // The device signs an https origin, and the request arrives over HTTP. This happens behind a proxy that does not send
            // X-Forwarded-Proto.
            return try await server.send(
                "GET", path, device.schemeTwoHeaders(origin: "https://localhost", at: server.clock.now))
        }
        let time = server.clock.now + (code == .clockSkew ? -301 : 0)
        var headers = try device.headers("GET", path, at: time)
        if code == .unsupportedSigVersion {
            headers = headers.map { $0.0 == HeaderName.signatureVersion ? ($0.0, "2") : $0 }
        }
        if code == .invalidAssertion { headers.append((HeaderName.assertion, "AAAA")) }
        if code == .nonceReplay { _ = try await server.send("GET", Route.status.rawValue, headers) }
        return try await server.send("GET", Route.status.rawValue, headers)
    }

    private static func refusedState(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse {
        if code == .devicePending { try await change(server) { $0["registration"] = ["approval": "manual"] } }
        let device = try await TestDevice.register(at: server)
        let (id, app) = (try DeviceID(device.id), try AppID(TestServer.appID))
        let operators = server.service.administration
        switch code {
        case .deviceRevoked: try await operators.revoke(id, of: app, reason: nil, actor: "test")
        case .keyExpired:
            try await operators.forceRotation(id, of: app, by: server.clock.now, actor: "test")
            server.clock.advance(1)
        case .serviceUnavailable: await server.stores.fail(.claim)
        case .attestationRequired:
            // A device in development mode need not attest again, so this device is an Android phone with an assurance from
            // Google.
            try await change(server) { $0["keys"] = ["reattest_on_rotation": true] }
            let (key, phone) = (P256.Signing.PrivateKey(), DeviceID(from: SystemRandom()))
            _ = try await server.stores.insert(
                DeviceRecord(
                    appID: app, deviceID: phone, platform: .android, status: .registered,
                    key: DevicePublicKey(key.publicKey), assurance: Assurance(app: .playIntegrity, key: .appVouched),
                    registeredAt: server.clock.now),
                recording: AuditEvent(.deviceRegistered, at: server.clock.now, actor: "test"))
            let next = Base64.standard.encode(Array(P256.Signing.PrivateKey().publicKey.derRepresentation))
            return try await TestDevice(key: key, id: phone.text).send(
                .rotateKey, to: server,
                body: [
                    "app_id": .string(app.text), "device_id": .string(phone.text), "new_public_key": .string(next),
                ])
        case .rotationFailed:
            // A rotation to the current key is refused if no rotation happened before.
            return try await device.send(
                .rotateKey, to: server,
                body: [
                    "app_id": .string(app.text), "device_id": .string(device.id),
                    "new_public_key": .string(Base64.standard.encode(Array(device.key.publicKey.derRepresentation))),
                ])
        default: break
        }
        return try await device.send(.token, to: server, body: .object(JSONObject()))
    }

    private static func refusedQuestion(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse {
        if code == .assertionRequired {
            try await change(server) {
                $0["ios"] = ["app_ids": ["TEAMID1234.com.example.app"], "assertions_required_on": ["/v1/pay"]]
            }
        }
        let device = try await TestDevice.register(at: server)
        let credential = try await server.credential(
            code == .forbidden ? .admin : .service, apps: [TestServer.appID])
        return try await server.post(
            .verify, try device.question(at: server.clock.now),
            code == .unauthorized ? [] : [("Authorization", "Bearer \(credential)")])
    }

    private static func refusedChange(_ code: ErrorCode, at server: TestServer) async throws -> RawResponse {
        let admin = try await server.credential(.admin)
        let record = JSONValue.object(TestServer.record)
        guard code == .preconditionFailed else {
            return try await server.administer("POST", "/apps", admin, body: record)
        }
        return try await server.administer(
            "PUT", "/apps/\(TestServer.appID)", admin, [("If-Match", "\"older\"")], body: record)
    }

    /// No request of a client produces this code. It is the answer to a defect of the service.
    private static func internalError(at server: TestServer) async throws -> RawResponse {
        struct Defect: Error {}
        return try answered(Refusal.answering(Defect()), at: server)
    }

    private static func answered(_ refusal: Refusal, at server: TestServer) throws -> RawResponse {
        let answer = ResponseFrame(requestID: "id", now: server.clock.now).answer(refusal)
        return RawResponse(
            status: answer.status, headers: [(name: "X-Request-ID", value: "id")], body: try #require(answer.body))
    }
}
