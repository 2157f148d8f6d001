import AuthContract
import Crypto
import Foundation
import StrictJSON

/// A device that registers with a development proof. It builds its requests without the SDK, and signs under scheme 1.
struct DevelopmentDevice: Sendable {
    let id: DeviceID
    var key: P256.Signing.PrivateKey

    static let appID = "com.example.app"
    /// The record of an app that admits development devices.
    static let app = """
        {"app_id":"\(appID)","build_channel":"dev","development_integrity_allowed":true,
         "ios":{"app_ids":["TEAMID1234.\(appID)"]}}
        """

    /// Registers this key; nil if the service did not confirm it.
    static func register(_ key: P256.Signing.PrivateKey, port: Int) async -> DevelopmentDevice? {
        guard let challenge = await challenge(port: port) else { return nil }
        return await register(key, with: challenge, port: port)
    }

    /// A new challenge; nil if the service gave none.
    static func challenge(port: Int) async -> [UInt8]? {
        let asked = await WireConnection.exchange(
            port: port,
            WireRequest(
                method: "POST", target: Route.challenge.rawValue,
                body: JSONValue.object(JSONObject([("app_id", .string(appID))])).bytes))
        return asked?.json["challenge"]?.string.flatMap { Base64.standard.decode($0) }
    }

    /// Registers this key with a challenge; nil if the service did not confirm it.
    static func register(
        _ key: P256.Signing.PrivateKey, with challenge: [UInt8], port: Int
    ) async -> DevelopmentDevice? {
        guard let request = try? registration(key, challenge),
            let answer = await WireConnection.exchange(port: port, request), answer.status == 200,
            let id = answer.json["device_id"]?.string.flatMap({ try? DeviceID($0) })
        else { return nil }
        return DevelopmentDevice(id: id, key: key)
    }

    private static func registration(_ key: P256.Signing.PrivateKey, _ challenge: [UInt8]) throws -> WireRequest {
        let text = DevicePublicKey(key.publicKey).base64
        let proof = try key.signature(
            for: KeyProof.registration(BindingNonce(challenge: challenge, publicKeyText: text)))
        let body = JSONObject([
            ("app_id", .string(appID)), ("public_key", .string(text)),
            ("challenge", .string(Base64.standard.encode(challenge))), ("platform", "ios"), ("proof", "development"),
            ("key_proof", .string(Base64.standard.encode(Array(proof.derRepresentation)))),
        ])
        return WireRequest(
            method: "POST", target: Route.register.rawValue, headers: [(HeaderName.developmentMode, "true")],
            body: JSONValue.object(body).bytes)
    }

    /// A request that is dated `ahead` seconds from now.
    func request(_ route: Route, body: [UInt8] = [], nonce: String? = nil, ahead: Int64 = 0) throws -> WireRequest {
        try request(route.method, route.rawValue, body: body, nonce: nonce, at: Self.now + ahead)
    }

    /// A request that is dated at this time.
    func request(
        _ method: String, _ path: String, body: [UInt8] = [], nonce: String? = nil, at time: UnixTime
    ) throws -> WireRequest {
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: time, body: body)
        let fields = SchemeOneHeaders(
            appID: try AppID(Self.appID), deviceID: id,
            signature: RequestSignature(try key.signature(for: message)), timestamp: time,
            nonce: try nonce.map { try RequestNonce($0) } ?? RequestNonce(from: SystemRandom())
        ).fields
        return WireRequest(
            method: method, target: path, headers: fields.map { ($0.name, $0.value) }, body: body)
    }

    /// A rotation to this key.
    func rotation(to new: P256.Signing.PrivateKey) throws -> WireRequest {
        let text = DevicePublicKey(new.publicKey).base64
        let body = RotateKeyRequest(
            appID: try AppID(Self.appID), deviceID: id, newPublicKeyText: text,
            newKeyProof: Array(
                try new.signature(for: KeyProof.rotation(deviceID: id, newPublicKeyText: text)).derRepresentation))
        return try request(.rotateKey, body: body.bytes)
    }

    /// The thumbprint of the key that the device believes to be current.
    var thumbprint: String { DevicePublicKey(key.publicKey).thumbprint }

    static var now: UnixTime { UnixTime(Int64(Date().timeIntervalSince1970)) }
}

extension WireRequest {
    /// The same signed request with another nonce, which scheme 1 does not cover.
    func underNewNonce() -> WireRequest {
        var request = self
        request.headers = headers.map {
            $0.0 == HeaderName.nonce ? ($0.0, RequestNonce(from: SystemRandom()).text) : $0
        }
        return request
    }
}
