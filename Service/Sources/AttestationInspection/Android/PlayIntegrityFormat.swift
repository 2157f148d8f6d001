internal import Foundation
internal import PlayIntegrity
package import StrictJSON

/// Play Integrity tokens: `token`, compared with `package` and `nonce` if given, judged at `evaluate_at`.
///
/// Classic tokens are decoded with `--play-keys`. A standard token, which only Google can decode, could not be checked. A
/// `recorded_verdict` is used only in evidence: an attacker may have written a line.
package struct PlayIntegrityFormat: AttestationFormat {
    package static let name = "play-integrity"

    /// The format.
    package init() {}

    package func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let token = try line.optionalString("token")
        let package = try line.optionalString("package")
        let binding = try Self.binding(line)
        let packages = try line.optionalStrings("packages").map { Set($0) } ?? package.map { [$0] }
        let recorded = options.trustsLine ? try Self.recordedVerdict(line) : nil
        let time = try AndroidInputLine.time("evaluate_at", in: line)
        guard let token else { return .missing("token") }

        let policy: PlayIntegrityPolicy
        do { policy = try Self.policy(line, options) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        let keys: [ResponseKeys]
        do { keys = try Self.keys(options) } catch {
            return .unusable("play_keys", code: "PLAY_KEYS_UNREADABLE", error)
        }

        var expected = PlayIntegrityExpectations()
        (expected.packages, expected.binding, expected.date) = (packages, binding, time)
        let audit = PlayIntegrityVerifier(policy: policy, packages: [])
            .audit(token, keys: keys, decodedVerdict: recorded, against: expected)
        var facts = JSONObject()
        if let token = audit.token { facts["token_form"] = .string(Self.form(token)) }
        if let verdict = audit.verdict { PlayIntegrityFacts.add(verdict, to: &facts) }
        return Verdict(audit, facts: facts)
    }

    /// The value that the token must have: as its nonce, or as its nonce or request hash, whichever it has.
    private static func binding(_ line: JSONFields) throws(JSONError) -> IntegrityBinding? {
        if let either = try line.optionalString("nonce_or_request_hash") { return .either(either) }
        return try line.optionalString("nonce").map { .nonce($0) }
    }

    /// The verdict that the service recorded, for a token that cannot be decoded here.
    private static func recordedVerdict(_ line: JSONFields) throws(JSONError) -> IntegrityVerdict? {
        guard let recorded = try line.optionalObject("recorded_verdict") else { return nil }
        guard let payload = try recorded.value("payload").object else {
            throw JSONError(.wrongType, path: recorded.pathOf("payload"))
        }
        return IntegrityVerdict(payload: payload, decodedBy: try recorded.choice("decoded_by"))
    }

    package func inspect(_ object: [UInt8]) -> JSONValue? {
        let text = String(decoding: object, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        if let payload = try? JSONValue(parsing: object).object { return Self.inspect(payload: payload) }
        guard let token = try? IntegrityToken(text) else { return nil }
        // Any base64 looks like an opaque token. Google's tokens begin with the first field of a protocol buffer.
        if case .opaque = token, !text.hasPrefix("C") || text.utf8.count < 100 { return nil }
        return .object(JSONObject([("token_form", .string(Self.form(token)))]))
    }

    /// A verdict that was decoded elsewhere, with or without the wrapper of Google's response.
    private static func inspect(payload: JSONObject) -> JSONValue? {
        let wrapped = payload["tokenPayloadExternal"] ?? .object(payload)
        guard wrapped.object?["requestDetails"] != nil,
            case .decoded(let verdict) = DecodeOutcome.googleAnswer(
                status: 200, body: JSONValue.object(JSONObject([("tokenPayloadExternal", wrapped)])).bytes)
        else { return nil }
        var facts = JSONObject()
        PlayIntegrityFacts.add(verdict, to: &facts)
        return .object(facts)
    }

    private static func form(_ token: IntegrityToken) -> String {
        switch token {
        case .classic: "classic"
        case .opaque: "opaque"
        }
    }

    /// The default policy, overridden by the members of the line's own policy and of the policy file.
    private static func policy(
        _ line: JSONFields, _ options: VerificationOptions
    ) throws(JSONError) -> PlayIntegrityPolicy {
        var policy = defaultPolicy
        for layer in try options.layers(of: .playIntegrity, over: line.optionalValue("policy")) {
            if let members = layer.members { policy = try policy.applying(members, ignoring: ["service_account"]) }
        }
        return policy
    }

    /// The default of the batch interface: the app of the published vectors. It must be licensed.
    private static let defaultPolicy: PlayIntegrityPolicy = {
        let digest: [UInt8] = [
            0xFB, 0x60, 0x0C, 0x0C, 0xE4, 0xB4, 0x1D, 0x9A, 0x59, 0xA3, 0x0C, 0x4F, 0x6D, 0x2A, 0xA3, 0x5C,
            0x14, 0x1E, 0x0F, 0xC7, 0x4C, 0x87, 0x95, 0x65, 0xA7, 0x5D, 0x45, 0xDD, 0x91, 0x09, 0x6F, 0x3E,
        ]
        var policy = PlayIntegrityPolicy(certificateDigests: [digest])
        policy.requiresLicense = true
        return policy
    }()

    /// One pair of keys, an array of pairs, or an object with such an array as `keys`, as in an app record.
    private static func keys(_ options: VerificationOptions) throws(JSONError) -> [ResponseKeys] {
        guard let given = options.playKeys else { return [] }
        let pairs = given.array ?? given.object?["keys"]?.array ?? [given]
        var keys: [ResponseKeys] = []
        for pair in pairs { keys.append(try ResponseKeys(JSONFields(pair, path: "play_keys"))) }
        return keys
    }
}

extension Verdict {
    /// The result of an audit.
    fileprivate init(_ audit: PlayIntegrityAudit, facts: JSONObject) {
        let outcome: Outcome =
            switch (audit.refusal, audit.unavailable) {
            case (_?, _): .refused
            case (nil, _?): .couldNotCheck
            case (nil, nil): .verified
            }
        self.init(
            outcome, code: audit.refusal?.code.rawValue ?? audit.unavailable?.code.rawValue,
            step: audit.refusal?.step.rawValue
                ?? audit.unavailable.map { _ in PlayIntegrityError.Step.decryption.rawValue },
            unchecked: audit.unchecked.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }
}

/// Everything that a verdict says, with names.
enum PlayIntegrityFacts {
    static func add(_ verdict: IntegrityVerdict, to facts: inout JSONObject) {
        func strings(_ values: [String]) -> JSONValue { .array(values.map { .string($0) }) }
        facts["decoded_by"] = .string(verdict.decoder.rawValue)
        facts["package"] = verdict.requestPackageName.map { .string($0) }
        facts["nonce"] = verdict.nonce.map { .string($0) }
        facts["request_hash"] = verdict.requestHash.map { .string($0) }
        facts["timestamp_millis"] = verdict.timestampMillis.map { .integer($0) }
        facts["app_recognition_verdict"] = verdict.appRecognitionVerdict.map { .string($0) }
        facts["app_package"] = verdict.appPackageName.map { .string($0) }
        facts["certificate_digests"] = strings(verdict.certificateDigests)
        facts["version_code"] = verdict.versionCode.map { .integer($0) }
        facts["device_labels"] = strings(verdict.deviceLabels)
        facts["sdk_version"] = verdict.sdkVersion.map { .integer($0) }
        facts["device_activity_level"] = verdict.deviceActivityLevel.map { .string($0) }
        facts["recall_bits_set"] = strings(verdict.recallBitsSet)
        facts["app_licensing_verdict"] = verdict.appLicensingVerdict.map { .string($0) }
        facts["play_protect_verdict"] = verdict.playProtectVerdict.map { .string($0) }
        facts["app_access_risks"] = strings(verdict.appAccessRisks)
        facts["test_response"] = .bool(verdict.isTestingResponse)
        facts["payload"] = .object(verdict.payload)
    }
}
