import AuthContract
import Crypto

/// A request that tests change, sign and verify.
struct SchemeTwoRequest: Sendable {
    static let privateKey = P256.Signing.PrivateKey()
    static let key = DevicePublicKey(privateKey.publicKey)

    var method = "POST"
    var scheme = "https"
    var authority = "api.example.com"
    var path = "/v1/hsi"
    var query: String? = "a=b%20c"
    var body = Array(#"{"a":1}"#.utf8)
    var appID = "com.example.app"
    var deviceID = "123e4567-e89b-42d3-a456-426614174000"
    var created: Int64 = 1_700_000_000
    var nonce = "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b"

    func parameters() throws -> SchemeTwoParameters {
        try SchemeTwoParameters(created: UnixTime(created), nonce: RequestNonce(nonce), key: Self.key)
    }

    func base() throws -> SignatureBase {
        try SignatureBase(
            method: method, origin: RequestOrigin(scheme: scheme, authority: authority),
            target: RequestTarget(path: RequestPath(path), query: query), contentDigest: ContentDigest(of: body),
            appID: AppID(appID), deviceID: DeviceID(deviceID), parameters: parameters())
    }

    /// The headers that a client sends.
    func sign() throws -> SchemeTwoHeaders {
        SchemeTwoHeaders(
            appID: try AppID(appID), deviceID: try DeviceID(deviceID), contentDigest: ContentDigest(of: body),
            parameters: try parameters(),
            signature: RequestSignature(try Self.privateKey.signature(for: base().bytes)))
    }

    func lines() throws -> [(String, String)] { try sign().fields.map { ($0.name, $0.value) } }

    /// Whether these header lines verify for this request. Throws if they cannot be parsed.
    func verifies(with lines: [(String, String)]) throws -> Bool {
        let headers = try SchemeTwoHeaders(HeaderFields(lines))
        let base = try headers.base(
            method: method, origin: RequestOrigin(scheme: scheme, authority: authority),
            target: RequestTarget(path: RequestPath(path), query: query))
        return headers.contentDigest == ContentDigest(of: body) && headers.parameters.keyID == Self.key.thumbprint
            && headers.signature.isValid(for: base.bytes, by: Self.key)
    }
}
