internal import AuthContract

/// The signed part of a request, in the exact form of its scheme. Nothing of it is proven yet.
struct SignedRequest: Sendable {
    let appID: AppID
    let deviceID: DeviceID
    let timestamp: UnixTime
    let signature: RequestSignature
    let method: String
    let target: RequestTarget
    let form: Form

    /// What differs between the schemes.
    enum Form: Sendable {
        case schemeOne(RequestNonce, body: [UInt8])
    }

    var scheme: SignatureScheme {
        switch form {
        case .schemeOne: .one
        }
    }

    var isRead: Bool { ["GET", "HEAD", "OPTIONS"].contains(method) }

    /// Reads a request strictly: exactly one of each header, each in its form.
    init(_ request: IncomingRequest) throws(Refusal) {
        method = try Self.method(request.method)
        target = try wellFormed { try RequestTarget(path: RequestPath(request.path), query: request.query) }
        guard let version = try wellFormed({ try request.headers.atMostOne(HeaderName.signatureVersion) }) else {
            throw Refusal(malformed: ContractError("\(HeaderName.signatureVersion) is missing"))
        }
        guard version == SchemeOneHeaders.version else {
            throw Refusal(.unsupportedSigVersion, "\(HeaderName.signatureVersion) is not \(SchemeOneHeaders.version)")
        }
        guard case .bytes(let body) = request.body else {
            throw Refusal(malformed: ContractError("scheme 1 needs the body itself, not its digest"))
        }
        let headers = try wellFormed { try SchemeOneHeaders(request.headers) }
        appID = headers.appID
        deviceID = headers.deviceID
        timestamp = headers.timestamp
        signature = headers.signature
        form = .schemeOne(headers.nonce, body: body)
    }

    /// The bytes that the signature signs, where the path is signed as `path`.
    func message(path: RequestPath) -> [UInt8] {
        switch form {
        case .schemeOne(_, let body):
            SchemeOneMessage.bytes(method: method, path: path.text, timestamp: timestamp, body: body)
        }
    }

    /// What may be seen once.
    func claims(message: [UInt8]) -> [ReplayClaim] {
        switch form {
        case .schemeOne(let nonce, _): [.nonce(nonce, of: deviceID), .signatureR(signature, of: deviceID)]
        }
    }

    /// The method in upper case; letters, digits and `-` alone, so that no line break can move into the message.
    private static func method(_ text: String) throws(Refusal) -> String {
        let isToken = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"): true
            default: false
            }
        }
        guard isToken, (1...32).contains(text.utf8.count) else {
            throw Refusal(malformed: ContractError("the method must be letters"))
        }
        return text.uppercased()
    }
}
