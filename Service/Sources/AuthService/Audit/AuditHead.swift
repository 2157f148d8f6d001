public import AuthContract

/// The end of the audit log at some time, signed by the service. A head that is kept elsewhere proves later whether the log still
/// has the same events.
///
/// Its text is one word: `audit-head-v1.<sequence>.<unix time>.<hash>.<signature>`, the last two in base64url. The head that
/// joins an archive to the log begins with `audit-archive-v1`, so that no other head can be used in its place.
public struct AuditHead: Sendable, Hashable, CustomStringConvertible {
    /// Whether the head is the end of the log or of an archive.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The log, at some time.
        case log = "audit-head-v1"
        /// An archive.
        case archive = "audit-archive-v1"
    }

    /// Whether the head is the end of the log or of an archive.
    public let kind: Kind
    /// The number of the last event; 0 for an empty log.
    public let sequence: Int64
    /// When the head was signed.
    public let at: UnixTime
    /// The last event's hash, 32 bytes; `AuditChain.origin` for an empty log.
    public let hash: [UInt8]
    /// The Ed25519 signature over the rest of the head's text, 64 bytes.
    public let signature: [UInt8]

    init(_ kind: Kind = .log, sequence: Int64, at: UnixTime, hash: [UInt8], signature: [UInt8]) {
        self.kind = kind
        self.sequence = sequence
        self.at = at
        self.hash = hash
        self.signature = signature
    }

    /// Parses a head. ``AuditTrail/verify(against:)`` checks the signature.
    public init(_ text: String) throws(ContractError) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard text.utf8.count <= 256, parts.count == 5, let kind = Kind(rawValue: parts[0]),
            let sequence = Int64(parts[1]), sequence >= 0, let at = Int64(parts[2]),
            let hash = Base64.url.decode(parts[3]), hash.count == 32,
            let signature = Base64.url.decode(parts[4]), signature.count == 64
        else { throw ContractError("an audit head is one word that begins with \(Kind.log.rawValue)") }
        self.init(kind, sequence: sequence, at: UnixTime(at), hash: hash, signature: signature)
        // A head has exactly one text: its numbers have no sign and no leading zeros.
        guard description == text else { throw ContractError("an audit head is given as it was printed") }
    }

    public var description: String {
        Self.signedText(kind, sequence: sequence, at: at, hash: hash) + "." + Base64.url.encode(signature)
    }

    /// The text that is signed.
    static func signedText(_ kind: Kind, sequence: Int64, at: UnixTime, hash: [UInt8]) -> String {
        "\(kind.rawValue).\(sequence).\(at).\(Base64.url.encode(hash))"
    }
}

/// The result of checking the audit log.
public enum AuditCheckResult: Sendable, Hashable {
    /// The checked part of the chain has no break, and contains the given head.
    case intact
    /// The event with this number is changed or missing.
    case brokenLink(Int64)
    /// The log does not contain the head's event, and ends at this number.
    case cut(last: Int64)
    /// The head's event has another hash, so the head belongs to another chain.
    case rewritten
    /// The head was not signed by this service, so it proves nothing about the log.
    case headOfOtherKey
    /// The file of the archive that begins with this event is missing, so its events are not checked.
    case archiveMissing(Int64)
    /// The archive that begins with this event is changed, does not follow the one before it, or its seal is not genuine.
    case archiveBroken(Int64)
}
