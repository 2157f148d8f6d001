internal import AuthContract

/// The signed part of a request, in the exact form of its scheme. Nothing of it is proven yet.
///
/// A class, because each step of a judgement is handed it.
final class SignedRequest: Sendable {
    let headers: SignatureHeaders
    /// As on the wire, a token of letters.
    let method: String
    let target: RequestTarget
    private let body: VerifyRequest.Body

    var appID: AppID { headers.appID }
    var deviceID: DeviceID { headers.deviceID }
    var timestamp: UnixTime { headers.timestamp }

    var scheme: SignatureScheme {
        switch headers {
        case .one: .one
        case .two: .two
        }
    }

    var signature: RequestSignature { headers.signature }

    private static let reads: Set = ["GET", "HEAD", "OPTIONS"]

    /// Whether the method only reads.
    var isRead: Bool { Self.reads.contains(method.uppercased()) }

    /// Reads a request strictly: exactly one of each header, each in its form.
    init(_ request: borrowing IncomingRequest) throws(Refusal) {
        body = request.body
        method = request.method
        target = try wellFormed { try RequestTarget(path: RequestPath(request.path), query: request.query) }
        headers = try wellFormed { try SignatureHeaders(request.headers) }
        // Letters alone, so that no line break can move into what is signed.
        guard (1...32).contains(method.utf8.count), method.utf8.allSatisfy(Self.isMethodLetter) else {
            throw Refusal(malformed: ContractError("the method must be letters"))
        }
    }

    /// What must be signed, where the path is signed as `path` and the request was sent to `origin`.
    func message(path: RequestPath, origin: RequestOrigin?) throws(Refusal) -> SignedMessage {
        switch headers {
        case .one(let headers):
            guard case .bytes(let body) = body else {
                throw Refusal(malformed: ContractError("scheme 1 needs the body itself, not its digest"))
            }
            let bytes = SchemeOneMessage.bytes(
                method: method, path: path.text, timestamp: headers.timestamp, body: body)
            return SignedMessage(
                bytes: bytes, keyID: nil,
                claims: [.nonce(headers.nonce, of: deviceID), .signatureR(headers.signature, of: deviceID)])
        case .two(let headers):
            guard let origin else { throw Refusal(.unsupportedSigVersion, "the app names no authorities") }
            try checkDigest(headers.contentDigest)
            let base = try wellFormed {
                try headers.base(
                    method: method, origin: origin, target: RequestTarget(path: path, query: target.query))
            }
            return SignedMessage(
                bytes: base.bytes, keyID: headers.parameters.keyID,
                claims: [.signatureBase(base.digest, of: deviceID)])
        }
    }

    private func checkDigest(_ digest: ContentDigest) throws(Refusal) {
        let actual: [UInt8] =
            switch body {
            case .bytes(let body): ContentDigest(of: body).sha256
            case .sha256(let digest): digest
            }
        guard constantTimeEquals(actual, digest.sha256) else {
            throw Refusal(.invalidSignature, "the body is not the one of Content-Digest")
        }
    }

    private static func isMethodLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// What a request's signature must sign, and what it may be seen by once.
struct SignedMessage: Sendable {
    let bytes: [UInt8]
    /// The thumbprint of the key that the signer says it used; scheme 2 alone.
    let keyID: String?
    let claims: [ReplayClaim]
}
