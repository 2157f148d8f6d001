public import StrictJSON

/// A refusal, with all that it takes to come to it again: one JSON document (DocC article *Evidence*).
///
/// The inputs are an input line as batches have them; the policy, the roots and the list of revoked keys are those that
/// were in effect. Nothing secret is in it, but what identifies a device is: treat it as personal data.
public struct EvidenceFile: Sendable {
    /// The version of the document that is written; no other is read.
    public static let version: Int64 = 1
    /// Bytes beyond which nothing is read.
    public static let maximumSize = 4 << 20

    /// Certificates that were trusted.
    public struct Roots: Sendable, Hashable {
        /// PEM.
        public let pem: String
        /// Whether Apple's and Google's were trusted as well.
        public let areBesideBuiltIn: Bool
    }

    /// For people: where the refusal comes from. Has no part in the judgement.
    public let about: JSONObject
    /// The name of the evidence's format.
    public let format: String
    /// The input line, with its `format` and the time of the check.
    public let input: JSONObject
    /// The policy, as `--policy` takes it; nil: the defaults of a batch.
    public let policy: JSONValue?
    /// Nil: the built-in ones.
    public let roots: Roots?
    /// As `--status-list` takes it.
    public let statusList: JSONValue?
    /// What it came to.
    public let verdict: RecordedVerdict

    /// Writes down a verification.
    ///
    /// - Parameters:
    ///   - line: what was judged, as an input line.
    ///   - options: what it was judged by. Response keys of Play Integrity are used and not written down: the decoded
    ///     verdict is.
    ///   - about: what a person should know beside it, such as app, time and device.
    ///   - refusal: code and step of a refusal that was met elsewhere, by the same checks; nil: what the line comes to.
    /// - Throws: where the line or the options cannot be read.
    public init(
        of line: JSONObject, options: VerificationOptions, about: JSONObject,
        refusal: (code: String, step: String)? = nil
    ) throws {
        let (format, found) = try Self.judge(line, options)
        self.about = about
        self.format = format
        var input = line
        // What the keys opened is kept instead of the keys.
        if input["recorded_verdict"] == nil, let payload = found.facts["payload"], let by = found.facts["decoded_by"] {
            input["recorded_verdict"] = ["decoded_by": by, "payload": payload]
        }
        self.input = input
        policy = options.policy
        roots = options.rootsPEM.map { Roots(pem: $0, areBesideBuiltIn: options.keepsBuiltInRoots) }
        statusList = options.statusList
        verdict = RecordedVerdict(found, refusal: refusal)
    }

    /// What may be other than it was.
    public struct Changes: Sendable {
        /// Another policy, as `--policy` takes it.
        public var policy: JSONValue?
        /// Another time, ISO 8601.
        public var time: String?
        /// Response keys, for tokens whose decoding is to be judged again.
        public var playKeys: JSONValue?

        /// Nothing.
        public init() {}
    }

    /// Judges it once more, by the same checks.
    ///
    /// - Throws: where the inputs, or what is to be other, cannot be read.
    public func replay(_ changes: Changes = Changes()) throws -> Verdict {
        var options = VerificationOptions()
        options.policy = changes.policy ?? policy
        options.keepsBuiltInRoots = roots?.areBesideBuiltIn ?? false
        options.rootsPEM = roots?.pem
        options.statusList = statusList
        options.playKeys = changes.playKeys
        var line = input
        if let time = changes.time {
            let member = format == PlayIntegrityFormat.name ? "evaluate_at" : "valid_at"
            line[member] = .string(time)
        }
        return try Self.judge(line, options).verdict
    }

    private static func judge(
        _ line: JSONObject, _ options: VerificationOptions
    ) throws -> (format: String, verdict: Verdict) {
        let fields = try JSONFields(.object(line), path: "input")
        let name = try fields.string("format")
        guard let format = AttestationFormats.named(name) else {
            throw JSONError(.wrongType, path: fields.pathOf("format"))
        }
        // The service that judged wrote both down: the line says what was compared, and the policy what was allowed.
        var options = options
        options.linePoliciesWin = true
        options.honoursRecordedVerdicts = true
        try options.validate()
        return (name, try format.verify(fields, options: options))
    }
}

extension EvidenceFile {
    /// The document.
    public var json: JSONObject {
        JSONObject([
            ("synheart_evidence", .integer(Self.version)), ("about", .object(about)), ("input", .object(input)),
            ("policy", policy ?? .null),
            ("roots", roots.map { ["pem": .string($0.pem), "beside_built_in": .bool($0.areBesideBuiltIn)] } ?? .null),
            ("status_list", statusList ?? .null), ("verdict", .object(verdict.json)),
        ])
    }

    /// Reads a document; members that are not known are refused, because they might have changed the verdict.
    public init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        let fields = try JSONFields(JSONValue(parsing: bytes, limits: .init(bytes: Self.maximumSize, depth: 40)))
        guard try fields.integer("synheart_evidence") == Self.version else {
            throw JSONError(.wrongType, path: fields.pathOf("synheart_evidence"))
        }
        try fields.allowOnly("synheart_evidence", "about", "input", "policy", "roots", "status_list", "verdict")
        about = fields.optionalValue("about")?.object ?? JSONObject()
        guard let input = try fields.value("input").object else {
            throw JSONError(.wrongType, path: fields.pathOf("input"))
        }
        self.input = input
        format = try fields.object("input").string("format")
        policy = fields.optionalValue("policy")
        statusList = fields.optionalValue("status_list")
        roots = try fields.optionalObject("roots").map { roots throws(JSONError) in
            try roots.allowOnly("pem", "beside_built_in")
            return Roots(pem: try roots.string("pem"), areBesideBuiltIn: try roots.bool("beside_built_in"))
        }
        verdict = try RecordedVerdict(try fields.object("verdict"))
    }
}
