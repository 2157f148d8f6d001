package import Foundation
package import PlayIntegrity
package import StrictJSON

/// A Play Integrity token with its expected values, as an input line of a batch names them. A nil value is not compared.
///
/// Classic tokens are decoded with response keys. A standard token, which only Google can decode, yields `could-not-check` unless
/// its verdict is known.
package struct PlayIntegrityEvidence: Sendable {
    /// The token; nil if the input line has none.
    private let token: String?
    private var expected = PlayIntegrityExpectations()
    /// The verdict in the token, as the service decoded or recorded it; nil if it is not known.
    private let verdict: IntegrityVerdict?
    /// The policy in the input line.
    private var ownPolicy: JSONValue?

    /// A token that the service judged.
    ///
    /// - Parameters:
    ///   - token: the token.
    ///   - verdict: the verdict in the token; nil: the token could not be decoded.
    ///   - packages: the packages that are accepted.
    ///   - binding: the nonce or request hash.
    ///   - date: the time of the check.
    package init(
        _ token: String, _ verdict: IntegrityVerdict?, packages: Set<String>, binding: String, at date: Date
    ) {
        (self.token, self.verdict) = (token, verdict)
        (expected.packages, expected.binding, expected.date) = (packages, .either(binding), date)
    }

    /// Reads an input line: `token`, compared with `packages` (or `package`) and `nonce_or_request_hash` (or `nonce`) if given, and
    /// judged at `evaluate_at`. A member that cannot be read throws.
    ///
    /// - Parameters:
    ///   - line: the line.
    ///   - isTrusted: whether `recorded_verdict` is used. Pass false for a line that an attacker may have written.
    package init(_ line: JSONFields, isTrusted: Bool) throws(JSONError) {
        token = try line.optionalString("token")
        let package = try line.optionalString("package")
        if let either = try line.optionalString("nonce_or_request_hash") {
            expected.binding = .either(either)
        } else {
            expected.binding = try line.optionalString("nonce").map { .nonce($0) }
        }
        expected.packages = try line.optionalStrings("packages").map { Set($0) } ?? package.map { [$0] }
        verdict = isTrusted ? try Self.recordedVerdict(line) : nil
        expected.date = try line.optionalTime("evaluate_at")
        ownPolicy = line.optionalValue("policy")
    }

    /// The recorded verdict of the service, for a token that cannot be decoded here.
    private static func recordedVerdict(_ line: JSONFields) throws(JSONError) -> IntegrityVerdict? {
        guard let recorded = try line.optionalObject("recorded_verdict") else { return nil }
        guard let payload = try recorded.value("payload").object else {
            throw JSONError(.wrongType, path: recorded.pathOf("payload"))
        }
        return IntegrityVerdict(payload: payload, decodedBy: try recorded.choice("decoded_by"))
    }

    /// The input line for this evidence.
    package var line: JSONObject {
        var line = JSONObject(.playIntegrity)
        line["token"] = token.map { .string($0) }
        line["packages"] = expected.packages.map { .array($0.sorted().map { .string($0) }) }
        switch expected.binding {
        case .nonce(let nonce): line["nonce"] = .string(nonce)
        case .either(let text), .requestHash(let text): line["nonce_or_request_hash"] = .string(text)
        case nil: break
        }
        line.set("evaluate_at", expected.date)
        line["recorded_verdict"] = verdict.map { verdict in
            ["decoded_by": .string(verdict.decoder.rawValue), "payload": .object(verdict.payload)]
        }
        return line
    }

    /// Runs the steps of the verification.
    package func audit(under options: VerificationOptions) throws(NothingVerified) -> PlayIntegrityAudit {
        guard let token else { throw .missing("token") }
        let policy = try NothingVerified.unlessReadable("policy") {
            try options.overriding(
                Self.defaultPolicy, .playIntegrity, with: ownPolicy, ignoring: ["service_account"])
        }
        let keys = try NothingVerified.unlessReadable("play_keys") { try options.responseKeys() }
        return PlayIntegrityVerifier(policy: policy, packages: [])
            .audit(token, keys: keys, decodedVerdict: verdict, against: expected)
    }

    /// The default policy of the batch interface: it accepts the signing certificate of the app in the published vectors, and
    /// requires a license.
    private static let defaultPolicy: PlayIntegrityPolicy = {
        let digest: [UInt8] = [
            0xFB, 0x60, 0x0C, 0x0C, 0xE4, 0xB4, 0x1D, 0x9A, 0x59, 0xA3, 0x0C, 0x4F, 0x6D, 0x2A, 0xA3, 0x5C,
            0x14, 0x1E, 0x0F, 0xC7, 0x4C, 0x87, 0x95, 0x65, 0xA7, 0x5D, 0x45, 0xDD, 0x91, 0x09, 0x6F, 0x3E,
        ]
        var policy = PlayIntegrityPolicy(certificateDigests: [digest])
        policy.requiresLicense = true
        return policy
    }()
}
