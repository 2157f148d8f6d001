package import StrictJSON
package import Verification

/// A refusal with all inputs to repeat it, as one JSON document (DocC article *Recordings*).
///
/// The document contains an input line of a batch, and the policy, the roots and the list of revoked keys that were in effect. It
/// contains no secrets. But it identifies a device, so treat it as personal data.
package struct RecordingFile: Sendable {
    /// The version of the document. Other versions are refused.
    package static let version: Int64 = 1
    /// The largest size of a document in bytes.
    package static let maximumSize = 4 << 20

    /// The origin of the refusal, for people. It has no effect on the verification.
    package let about: JSONObject
    /// The format of the object.
    package let format: String
    /// The input line, with its `format` and the time of the check.
    package let input: JSONObject
    /// The policy, the roots and the list of revoked keys. Response keys are never among them.
    package let options: VerificationOptions
    /// The recorded verdict.
    package let verdict: RecordedVerdict

    /// Records a verification.
    ///
    /// - Parameters:
    ///   - line: the input line.
    ///   - options: policy, roots and lists. Response keys of Play Integrity decode the token. The decoded verdict is
    ///     recorded, and the keys are not.
    ///   - about: facts for people, such as app, time and device.
    ///   - refusal: code and step of a refusal by the service; nil to record the result of verifying the line.
    /// - Throws: if the line or the options cannot be read.
    package init(
        of line: JSONObject, options: VerificationOptions, about: JSONObject,
        refusal: (code: String, step: String)? = nil
    ) throws {
        let (format, found) = try Self.judge(line, options)
        self.about = about
        self.format = format.rawValue
        var input = line
        // The decoded verdict is kept instead of the keys.
        if input["recorded_verdict"] == nil, let payload = found.facts["payload"], let by = found.facts["decoded_by"] {
            input["recorded_verdict"] = ["decoded_by": by, "payload": payload]
        }
        self.input = input
        var recorded = options
        recorded.playKeys = nil
        self.options = recorded
        verdict = RecordedVerdict(found, refusal: refusal)
    }

    /// Records a refusal by the service.
    ///
    /// - Parameters:
    ///   - proof: the refused proof.
    ///   - about: facts for people, such as app, time and device.
    /// - Throws: if the inputs or the options cannot be read.
    package init(of proof: RefusedProof, about: JSONObject) throws {
        try self.init(of: proof.line, options: proof.options, about: about, refusal: (proof.code, proof.step))
    }

    /// The changes for a replay.
    package struct Changes: Sendable {
        /// Another policy, in the form of `--policy`.
        package var policy: JSONValue?
        /// Another time, ISO 8601.
        package var time: String?
        /// Response keys, to decode tokens again.
        package var playKeys: JSONValue?
        /// The packages that a Play Integrity token may name, in place of the recorded ones.
        package var packages: [String]?
        /// Roots in PEM that are trusted besides the recorded ones.
        package var furtherRoots: [String] = []

        /// No changes.
        package init() {}
    }

    /// Repeats the verification.
    ///
    /// - Throws: if the inputs or the changes cannot be read.
    package func replay(_ changes: Changes = Changes()) throws -> Verdict {
        var options = options
        options.policy = changes.policy ?? options.policy
        options.playKeys = changes.playKeys
        let recorded = options.rootsPEM
        let further = changes.furtherRoots.filter { recorded?.contains($0) != true }
        if !further.isEmpty {
            // If no roots were recorded, the verification trusted the built-in ones, so keep them.
            if recorded == nil { options.keepsBuiltInRoots = true }
            options.rootsPEM = ([recorded].compactMap { $0 } + further).joined(separator: "\n")
        }
        var line = input
        let format = EvidenceFormat(rawValue: format)
        if let packages = changes.packages, format == .playIntegrity {
            line["packages"] = .array(packages.map { .string($0) })
        }
        if let format, let time = changes.time { line[format.timeMember] = .string(time) }
        return try Self.judge(line, options).verdict
    }

    private static func judge(
        _ line: JSONObject, _ options: VerificationOptions
    ) throws -> (format: EvidenceFormat, verdict: Verdict) {
        let fields = try JSONFields(.object(line), path: "input")
        let format: EvidenceFormat = try fields.choice("format")
        // The service or the command line wrote the line, so the line's members override the policy.
        var options = options
        options.linePoliciesWin = true
        options.trustsLine = true
        try options.validate()
        return (format, try format.verify(fields, options: options))
    }
}

extension RecordingFile {
    /// The document.
    package var json: JSONObject {
        JSONObject([
            ("synheart_evidence", .integer(Self.version)), ("about", .object(about)), ("input", .object(input)),
            ("policy", options.policy ?? .null),
            (
                "roots",
                options.rootsPEM.map { ["pem": .string($0), "beside_built_in": .bool(options.keepsBuiltInRoots)] }
                    ?? .null
            ),
            ("status_list", options.statusList ?? .null), ("verdict", .object(verdict.json)),
        ])
    }

    /// Parses a document. Unknown members are refused, because they might change the verdict.
    package init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
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
        var options = VerificationOptions()
        options.policy = fields.optionalValue("policy")
        options.statusList = fields.optionalValue("status_list")
        if let roots = try fields.optionalObject("roots") {
            try roots.allowOnly("pem", "beside_built_in")
            options.rootsPEM = try roots.string("pem")
            options.keepsBuiltInRoots = try roots.bool("beside_built_in")
        }
        self.options = options
        verdict = try RecordedVerdict(try fields.object("verdict"))
    }
}
