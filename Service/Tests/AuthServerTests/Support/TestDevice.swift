import AuthContract
import Crypto
import StrictJSON
import Testing

/// A device that is registered in development mode. It signs under scheme 1 or scheme 2.
struct TestDevice: Sendable {
    let key: P256.Signing.PrivateKey
    let id: String

    /// Registers a new key.
    static func register(at server: TestServer) async throws -> TestDevice {
        let key = P256.Signing.PrivateKey()
        let (response, _) = try await register(key, at: server)
        try #require(response.status == 200, "\(response.text)")
        return TestDevice(key: key, id: try #require(response.json["device_id"]?.string))
    }

    /// Registers this key. Returns the response and the request body.
    static func register(
        _ key: P256.Signing.PrivateKey, at server: TestServer, changing change: (inout JSONObject) -> Void = { _ in }
    ) async throws -> (RawResponse, JSONObject) {
        let challenge = try await server.post(.challenge, ["app_id": .string(TestServer.appID)])
        let bytes = try #require(challenge.json["challenge"]?.string.flatMap { Base64.standard.decode($0) })
        let publicKey = Base64.standard.encode(Array(key.publicKey.derRepresentation))
        let nonce = BindingNonce(challenge: bytes, publicKeyText: publicKey)
        let proof = try key.signature(for: KeyProof.registration(nonce)).derRepresentation
        var body = JSONObject([
            ("app_id", .string(TestServer.appID)), ("public_key", .string(publicKey)),
            ("challenge", .string(Base64.standard.encode(bytes))), ("platform", "ios"), ("proof", "development"),
            ("key_proof", .string(Base64.standard.encode(Array(proof)))),
        ])
        change(&body)
        return (try await server.post(.register, .object(body), [(HeaderName.developmentMode, "true")]), body)
    }

    /// The headers of a scheme 1 request with this date.
    func headers(
        _ method: String, _ path: String, body: [UInt8] = [], at time: UnixTime, nonce: String? = nil
    ) throws -> [(String, String)] {
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: time, body: body)
        let signature = try key.signature(for: message).derRepresentation
        return [
            (HeaderName.appID, TestServer.appID), (HeaderName.deviceID, id),
            (HeaderName.signature, Base64.standard.encode(Array(signature))),
            (HeaderName.timestamp, time.description),
            (HeaderName.nonce, nonce ?? RequestNonce(from: SystemRandom()).text), (HeaderName.signatureVersion, "1"),
        ]
    }

    /// The headers of a scheme 2 request for the device's status, with this date.
    func schemeTwoHeaders(origin: String, at time: UnixTime) throws -> [(String, String)] {
        let digest = ContentDigest(of: [])
        let parameters = try SchemeTwoParameters(
            created: time, nonce: RequestNonce(from: SystemRandom()), key: DevicePublicKey(key.publicKey))
        let base = try SignatureBase(
            method: "GET", origin: RequestOrigin(origin),
            target: RequestTarget(path: RequestPath(Route.status.rawValue), query: nil), contentDigest: digest,
            appID: AppID(TestServer.appID), deviceID: DeviceID(id), parameters: parameters)
        return SchemeTwoHeaders(
            appID: try AppID(TestServer.appID), deviceID: try DeviceID(id), contentDigest: digest,
            parameters: parameters, signature: RequestSignature(try key.signature(for: base.bytes))
        ).fields.map { ($0.name, $0.value) }
    }

    /// Sends a scheme 1 request to one of the service's routes.
    func send(
        _ route: Route, to server: TestServer, body: JSONValue? = nil,
        changing change: (inout [(String, String)]) -> Void = { _ in }
    ) async throws -> RawResponse {
        let bytes = body?.bytes ?? []
        var headers = try headers(route.method, route.rawValue, body: bytes, at: server.clock.now)
        change(&headers)
        if body != nil { headers.append(("Content-Type", "application/json")) }
        return try await server.send(route.method, route.rawValue, headers, body: body.map(\.bytes))
    }

    /// The body of a `/verify` request about a request that this device signed.
    func question(
        _ method: String = "POST", _ path: String = "/v1/pay", body: [UInt8] = Array("{}".utf8), at time: UnixTime,
        changing change: (inout [(String, String)]) -> Void = { _ in }
    ) throws -> JSONValue {
        var headers = try headers(method, path, body: body, at: time)
        change(&headers)
        return [
            "method": .string(method), "scheme": "https", "authority": "api.example.com", "path": .string(path),
            "query": .null, "headers": .array(headers.map { [.string($0.0), .string($0.1)] }),
            "body": .string(Base64.standard.encode(body)),
        ]
    }
}
