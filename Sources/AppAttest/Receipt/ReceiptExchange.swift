internal import Bytes
public import Crypto
public import Foundation
internal import StrictJSON

/// Signs requests to Apple's server, with a private key from the developer portal. DeviceCheck must be enabled for the key
/// ([Generating tokens](https://developer.apple.com/documentation/devicecheck/accessing-and-modifying-per-device-data)).
public struct DeviceCheckSigner: Sendable {
    /// The team's id: ten letters and digits.
    public let teamID: String
    /// The key's id in the portal: ten letters and digits.
    public let keyID: String
    private let privateKey: P256.Signing.PrivateKey

    /// A key from the developer portal.
    ///
    /// - Parameters:
    ///   - teamID: the team's id.
    ///   - keyID: the key's id.
    ///   - privateKey: the key of the `.p8` file: `P256.Signing.PrivateKey(pemRepresentation:)` reads it.
    public init(teamID: String, keyID: String, privateKey: P256.Signing.PrivateKey) {
        self.teamID = teamID
        self.keyID = keyID
        self.privateKey = privateKey
    }

    /// A token for one request: a JWT with the claims `iss` and `iat`, signed with ES256.
    public func token(at date: Date) throws -> String {
        let header: JSONValue = ["alg": "ES256", "kid": .string(keyID), "typ": "JWT"]
        let claims: JSONValue = ["iss": .string(teamID), "iat": .integer(CivilTime(date).secondsSince1970)]
        return try CompactJWS.sign(header: header.bytes, payload: claims.bytes) {
            Array(try privateKey.signature(for: $0).rawRepresentation)
        }
    }
}

extension DeviceCheckSigner: CustomStringConvertible, CustomReflectable {
    /// The team id and the key id, without the private key.
    public var description: String { "\(teamID)/\(keyID)" }
    /// A mirror with the team id and the key id, without the private key.
    public var customMirror: Mirror { Mirror(self, children: ["teamID": teamID, "keyID": keyID]) }
}

/// A request that exchanges a receipt for a newer one with a risk metric, as a value: sending it is left to an HTTP client
/// ([Assessing fraud risk](https://developer.apple.com/documentation/devicecheck/assessing-fraud-risk)).
public struct ReceiptExchangeRequest: Sendable {
    /// The URL to POST to.
    public let url: String
    /// The header `Authorization`: a bare token without a scheme, as in Apple's own example. A secret.
    public let authorization: String
    /// The body: the receipt in base64.
    public let body: [UInt8]

    /// A request for a stored receipt.
    ///
    /// - Parameters:
    ///   - receipt: the receipt as it was verified and stored.
    ///   - environment: the environment of the attested key; each environment has a separate server.
    ///   - signer: a key of the team that the App ID belongs to.
    ///   - date: the time of the request.
    ///   - server: scheme and host of another server, for tests. If nil, Apple's server for `environment` is used.
    public init(
        receipt: some Collection<UInt8>, environment: AttestEnvironment, signedBy signer: DeviceCheckSigner,
        at date: Date, server: String? = nil
    ) throws {
        url = (server ?? Self.server(of: environment)) + "/v1/attestationData"
        authorization = try signer.token(at: date)
        body = Array(Base64.standard.encode(receipt).utf8)
    }

    /// Apple's server for keys of an environment: scheme and host.
    public static func server(of environment: AttestEnvironment) -> String {
        switch environment {
        case .production: "https://data.appattest.apple.com"
        case .development: "https://data-development.appattest.apple.com"
        }
    }
}

/// The response of Apple's server to a ``ReceiptExchangeRequest``.
public enum ReceiptExchangeAnswer: Sendable, Hashable {
    /// 200: a newer receipt, not verified. Pass it to ``ReceiptVerifier``.
    case receipt([UInt8])
    /// 304: too early. Ask again after ``ReceiptFields/notBefore`` of the sent receipt, if it has one.
    case tooEarly
    /// 400: the receipt cannot be read, or is of the other environment.
    case badReceipt
    /// 401: the signer's key is not accepted.
    case unauthorized
    /// 404: Apple has no data about the device. This is normal 30 days after the last attestation. Keep the receipt.
    case noData
    /// 429: retry later, with back-off.
    case tooManyRequests
    /// 5xx, or an answer that is not documented: retry later, with back-off.
    case unavailable(status: Int)

    /// The largest body that is parsed, in bytes. Let your HTTP client read no more than this.
    public static let maximumBody = 2 * Receipt.maximumSize

    /// Interprets a response.
    ///
    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - body: the body. If it has more than ``maximumBody`` bytes, status 200 becomes ``unavailable(status:)``.
    public init(status: Int, body: some Collection<UInt8>) {
        switch status {
        case 200 where body.count > Self.maximumBody: self = .unavailable(status: 200)
        case 200:
            let text = String(decoding: body, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            let receipt = Base64.standard.decode(text) ?? []
            self = receipt.isEmpty ? .unavailable(status: 200) : .receipt(receipt)
        case 304: self = .tooEarly
        case 400: self = .badReceipt
        case 401: self = .unauthorized
        case 404: self = .noData
        case 429: self = .tooManyRequests
        default: self = .unavailable(status: status)
        }
    }
}
