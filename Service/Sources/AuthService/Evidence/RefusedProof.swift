internal import AuthContract
public import StrictJSON

/// A proof that a check refused, with everything needed to repeat the check: its inputs and its policies.
public struct RefusedProof: Sendable {
    /// The stable code of the refusal.
    public let code: String
    /// The check that refused.
    public let step: String
    /// The inputs, as an input line of a batch (DocC article *Batch verification* of AttestationInspection).
    public let line: JSONObject
    /// The policy of the check; nil: the defaults.
    public var policy: JSONValue?
    /// The trust anchors of the app in PEM; nil: the built-in ones.
    public var rootsPEM: String?
    /// Whether the built-in anchors are valid in addition to `rootsPEM`.
    public var keepsBuiltInRoots = false
    /// The entries of the list of revoked keys for the chain; nil: there was no list.
    public var statusList: JSONValue?
    /// The response keys of Play Integrity. They decode the token once, and must not be stored.
    public var playKeys: JSONValue?

    /// A proof that was refused under the default policies.
    public init(code: String, step: String, line: JSONObject) {
        self.code = code
        self.step = step
        self.line = line
    }
}

/// Writes the document from which a refusal can be replayed.
///
/// AuthService has the rules and no tool that repeats them. AttestationInspection's `EvidenceFile` writes such documents.
public protocol EvidenceWriter: Sendable {
    /// The document of a refused proof, and the name of the proof's format.
    ///
    /// - Parameters:
    ///   - proof: what was refused.
    ///   - subject: app, device, occasion and time, for people.
    /// - Throws: if the inputs or the policies cannot be read.
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject)
}
