import AuthContract
import Bytes
import Logging
import StrictJSON
import TestHelpers
import Testing

@testable import RequestVerification

/// The vectors for backends, `docs/vectors/backend.json`, and values that all tests share.
enum BackendVectors {
    static let app = "com.example.app"
    static let device = "123e4567-e89b-42d3-a456-426614174000"
    static let credential = "sk-of-these-tests-0123456789"

    static func document(_ name: String = "backend") throws -> JSONFields {
        try documents.withLock { read throws in
            if let fields = read[name] { return fields }
            let bytes = try ProtocolVectors.bytes(name)
            let fields = try JSONFields(JSONValue(parsing: bytes, limits: .init(bytes: 1 << 20, depth: 32)))
            read[name] = fields
            return fields
        }
    }

    /// The documents that were read, cached because every case needs a part of one.
    private static let documents = Locked<[String: JSONFields]>([:])

    static func cases(_ fields: JSONFields, _ list: String) throws -> [JSONFields] {
        try (fields.optionalArray(list) ?? []).map { try JSONFields($0) }
    }

    /// The configuration of one of the `instances`.
    static func configuration(
        _ name: String, service: String = "http://127.0.0.1:1"
    ) throws -> RequestVerifierConfiguration {
        let instance = try document().object("instances").object(name)
        let source: RequestSource =
            if let origin = try instance.optionalString("origin") { .origin(origin) } else {
                .trustedProxies(try instance.optionalStrings("trusted_proxies") ?? [])
            }
        var configuration = RequestVerifierConfiguration(service: service, credential: credential, source: source)
        configuration.bodyLimit = Int(try instance.integer("body_limit"))
        configuration.attempts = Int(try instance.integer("attempts"))
        configuration.timeout = .seconds(20)
        configuration.logger.logLevel = .critical
        return configuration
    }

    /// A request as a server passes it to the library, with the headers of its framing.
    static func request(_ fields: JSONFields) throws -> ReceivedRequest {
        let body = try fields.parsed("body_hex") { text in try #require(Hexadecimal.decode(text)) }
        let length = String(body.count)
        let framing: [(String, String)] =
            switch try fields.optionalString("framing") {
            case "chunked": [("Transfer-Encoding", "chunked")]
            case "both": [("Content-Length", length), ("Transfer-Encoding", "chunked")]
            case "lengths": [("Content-Length", length), ("Content-Length", String(body.count - 1))]
            case "sign": [("Content-Length", "+" + length)]
            case "short": [("Content-Length", String(body.count + 3))]
            default: body.isEmpty ? [] : [("Content-Length", length)]
            }
        return ReceivedRequest(
            method: try fields.string("method"), target: try fields.string("target"),
            headers: HeaderFields(try lines(fields) + framing), body: .bytes(body), peer: .address("127.0.0.1"))
    }

    static func lines(_ fields: JSONFields) throws -> [(String, String)] {
        try (fields.optionalArray("headers") ?? []).map { line in
            let pair = (line.array ?? []).compactMap { $0.string }
            try #require(pair.count == 2)
            return (pair[0], pair[1])
        }
    }

    /// The request that the service answers in the cases of `answers`.
    static func signedRequest() throws -> ReceivedRequest { try request(document().object("request")) }

    /// A request of this device that only looks signed.
    static func request(device: String = device, body: [UInt8] = []) -> ReceivedRequest {
        ReceivedRequest(
            method: "POST", target: "/", headers: HeaderFields([("X-App-ID", app), ("X-Device-ID", device)]),
            body: .bytes(body))
    }

    /// The answer by which the service accepts a request of this device.
    static func acceptance(device: String = device, identityToken: String? = nil) throws -> ServiceResponse {
        let identity = VerifiedIdentity(
            appID: try AppID(app), deviceID: try DeviceID(device), platform: .ios,
            assurance: Assurance(app: .appAttest, key: .appVouched), signatureScheme: .two, keyAgeSeconds: 1,
            identityToken: identityToken)
        return ServiceResponse(status: 200, headers: HeaderFields(), body: VerifyResponse.verified(identity).bytes)
    }
}
