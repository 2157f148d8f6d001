import AuthContract
import AuthService
import Crypto

import struct Foundation.Data

/// A device in software.
struct TestDevice {
    let appID: AppID
    let id: DeviceID
    var key: P256.Signing.PrivateKey

    var publicKey: DevicePublicKey { DevicePublicKey(key.publicKey) }
}

extension P256.Signing.PrivateKey {
    /// The signature in DER.
    func signs(_ message: [UInt8]) throws -> [UInt8] { Array(try signature(for: message).derRepresentation) }
}

/// A request before it is signed.
struct RequestDraft {
    var method = "POST"
    var path = "/v1/data"
    var query: String?
    var body = Array(#"{"a":1}"#.utf8)
    var scheme = SignatureScheme.one
    var origin = "https://api.example.com"
    /// How far the device's clock is ahead, in seconds.
    var ahead: Int64 = 0
    var nonce: RequestNonce?
    /// The app and the device that the headers name; nil for those of the device that signs.
    var appID: AppID?
    var deviceID: DeviceID?
    /// The key that `keyid` names, if it is not the signing key.
    var keyID: DevicePublicKey?
    /// The signed values, where they differ from the sent ones.
    var signedMethod: String?
    var signedPath: String?
    var signedQuery: String?
    var signedBody: [UInt8]?
    var signedOrigin: String?

    init() {}

    init(_ operation: Operation, body: [UInt8] = []) {
        let route: Route? =
            switch operation {
            case .status: .status
            case .rotateKey: .rotateKey
            case .deregister: .device
            case .token: .token
            case .otherService: nil
            }
        guard let route else { return }
        (method, path, self.body, origin) = (route.method, route.rawValue, body, "http://127.0.0.1:8080")
    }

    /// A draft with something changed.
    func with(_ change: (inout RequestDraft) -> Void) -> RequestDraft {
        var draft = self
        change(&draft)
        return draft
    }

    func signed(
        by device: TestDevice, at now: UnixTime, random: SeededRandom, address: ClientAddress
    ) throws -> SentRequest {
        let timestamp = now + ahead
        let nonce = nonce ?? RequestNonce(from: random)
        let (appID, deviceID) = (appID ?? device.appID, deviceID ?? device.id)
        let sent = try RequestOrigin(origin)
        let fields: [(name: String, value: String)]
        switch scheme {
        case .one:
            let message = SchemeOneMessage.bytes(
                method: signedMethod ?? method, path: signedPath ?? path, timestamp: timestamp,
                body: signedBody ?? body)
            fields =
                SchemeOneHeaders(
                    appID: appID, deviceID: deviceID,
                    signature: RequestSignature(try device.key.signature(for: message)),
                    timestamp: timestamp, nonce: nonce
                ).fields
        case .two:
            let digest = ContentDigest(of: signedBody ?? body)
            let parameters = try SchemeTwoParameters(
                created: timestamp, nonce: nonce, key: keyID ?? device.publicKey)
            let base = try SignatureBase(
                method: signedMethod ?? method, origin: try signedOrigin.map { try RequestOrigin($0) } ?? sent,
                target: RequestTarget(path: RequestPath(signedPath ?? path), query: signedQuery ?? query),
                contentDigest: digest, appID: appID, deviceID: deviceID, parameters: parameters)
            fields =
                SchemeTwoHeaders(
                    appID: appID, deviceID: deviceID, contentDigest: digest, parameters: parameters,
                    signature: RequestSignature(try device.key.signature(for: base.bytes))
                ).fields
        }
        return SentRequest(
            method: method, scheme: sent.scheme.rawValue, authority: sent.authority, path: path, query: query,
            headers: HeaderFields(fields.map { ($0.name, $0.value) }), body: .bytes(body), address: address)
    }
}

/// A request as it is sent. Its parts may be any text.
struct SentRequest: Sendable {
    var method: String
    var scheme: String
    var authority: String
    var path: String
    var query: String?
    var headers: HeaderFields
    var body: VerifyRequest.Body
    var address: ClientAddress

    /// The body of a `/verify` request about this request.
    func described(id: String? = nil, for audience: String? = nil) -> VerifyRequest {
        VerifyRequest(
            method: method, scheme: scheme, authority: authority, path: path, query: query, headers: headers,
            body: body, verificationID: id, identityAudience: audience)
    }
}

extension AuthService {
    /// Parses a request to one of the service's own routes, as the listener does, and judges it.
    func judge(_ request: SentRequest, for operation: Operation) async throws -> Judgement {
        let incoming: IncomingRequest
        do {
            incoming = try IncomingRequest(request.described(), address: request.address)
        } catch { throw Refusal(malformed: error) }
        return await judge(incoming, for: operation)
    }

    /// Judges a request to one of the service's own routes. Returns it as verified, or throws the refusal.
    func authenticate(_ request: SentRequest, for operation: Operation) async throws -> VerifiedRequest {
        try await judge(request, for: operation).get()
    }
}

extension SentRequest {
    /// The value of a header.
    func header(_ name: String) -> String { headers.values(name).first ?? "" }

    /// The request with one header instead of all headers with this name; nil removes them.
    func with(_ name: String, _ value: String?) -> SentRequest {
        var request = self
        request.headers.lines.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { request.headers.lines.append(.init(name, value)) }
        return request
    }

    /// The request with one more header line.
    func adding(_ name: String, _ value: String) -> SentRequest {
        var request = self
        request.headers.lines.append(.init(name, value))
        return request
    }

    /// The request under a fresh nonce, which scheme 1 does not sign.
    func underNewNonce(_ random: SeededRandom) -> SentRequest {
        with(HeaderName.nonce, RequestNonce(from: random).text)
    }

    /// The request with s replaced by n - s, which is a valid signature too.
    func withOtherS() throws -> SentRequest {
        let signature = try RequestSignature(base64: header(HeaderName.signature))
        return with(HeaderName.signature, try RequestSignature(raw: Array(signature.r) + signature.negatedS).base64)
    }
}

extension RequestSignature {
    /// n - s, where n is the order of P-256.
    fileprivate var negatedS: [UInt8] {
        let order: [UInt8] = [
            0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
        ]
        var (difference, borrow) = ([UInt8](repeating: 0, count: 32), 0)
        for (index, (left, right)) in zip(order, raw.suffix(32)).enumerated().reversed() {
            let digit = Int(left) - Int(right) - borrow
            difference[index] = UInt8((digit + 256) % 256)
            borrow = digit < 0 ? 1 : 0
        }
        return difference
    }
}
