internal import AndroidKeyAttestation
package import AppAttest
internal import PlayIntegrity
public import StrictJSON

/// The options of a verification: policy, roots, lists and keys.
public struct VerificationOptions: Sendable {
    /// Roots in PEM. They replace the built-in anchors unless `keepsBuiltInRoots` is true. Nil: only the built-in anchors are trusted.
    public var rootsPEM: String? { didSet { prepareAppleVerifiers() } }
    /// Whether the built-in anchors are trusted in addition to `rootsPEM`, as in an app with `trust_anchors`.
    public var keepsBuiltInRoots = false { didSet { prepareAppleVerifiers() } }
    /// Android's list of revoked keys, a JSON object with the member `entries`; nil: no list is used.
    public var statusList: JSONValue?
    /// Play Integrity's `DECRYPTION_KEY` and `VERIFICATION_KEY`: one pair, a list of them, or an object with such a list as `keys`.
    public var playKeys: JSONValue?
    /// The policy, in the form that `attestation verify --policy` takes; nil: the defaults of a batch.
    public var policy: JSONValue?
    /// Whether a line's own policy, environment and App IDs override ``policy``. By default ``policy`` overrides them.
    package var linePoliciesWin = false
    /// Whether this program wrote the line, from evidence or from the options for one object. Only then are `recorded_verdict`,
    /// `expected_challenge` and `challenge_member` used. A line of a batch may come from an attacker.
    package var trustsLine = false

    /// The Apple verifiers for `rootsPEM`, created once for all lines; nil if `rootsPEM` has no certificate.
    private var apple: AppleVerifiers? = .builtIn

    /// No options.
    public init() {}
}

extension VerificationOptions {
    /// The reason why options cannot be used.
    package struct Problem: Error, Sendable, CustomStringConvertible {
        /// A sentence for the operator.
        package let description: String
    }

    /// Checks the options before the first input line is read. Throws if no line can use the roots, or if the list of revoked keys or
    /// the response keys are unusable. An unusable policy does not throw: each line with it gets `could-not-check`. Nor do roots that
    /// only Apple's or only Android's objects can use, such as X.509 v1 certificates: each line of the other kind gets `could-not-check`.
    package func validate() throws(Problem) {
        if apple == nil, (try? keyAttestationAnchors()) == nil { throw Self.noRoots }
        if let statusList, (try? RevocationStatusList(statusList)) == nil {
            throw Problem(
                description: "--status-list: expected Android's list of revoked keys, a JSON object with `entries`")
        }
        guard playKeys == nil || (try? responseKeys())?.isEmpty == false else {
            throw Problem(
                description:
                    "--play-keys: expected a JSON object with DECRYPTION_KEY and VERIFICATION_KEY, or a list of them")
        }
    }

    private mutating func prepareAppleVerifiers() {
        guard let rootsPEM else {
            apple = .builtIn
            return
        }
        apple = TrustAnchors(pem: rootsPEM).map { roots in
            AppleVerifiers(trustAnchors: keepsBuiltInRoots ? TrustAnchors.apple.adding(roots) : roots)
        }
    }

    /// The Apple verifiers for `rootsPEM`. Throws if `rootsPEM` has no certificate that App Attest's verifiers can use.
    package func appleVerifiers() throws(Problem) -> AppleVerifiers {
        guard let apple else { throw Self.noRoots }
        return apple
    }

    private static let noRoots = Problem(
        description: "roots: expected certificates in PEM, of which at least one can be read")

    func keyAttestationAnchors() throws -> KeyAttestationTrustAnchors {
        guard let rootsPEM else { return .google }
        let roots = try KeyAttestationTrustAnchors(pem: rootsPEM)
        return keepsBuiltInRoots ? .google.adding(roots) : roots
    }

    func responseKeys() throws(JSONError) -> [ResponseKeys] {
        guard let playKeys else { return [] }
        var keys: [ResponseKeys] = []
        for pair in playKeys.array ?? playKeys.object?["keys"]?.array ?? [playKeys] {
            keys.append(try ResponseKeys(JSONFields(pair, path: "play_keys")))
        }
        return keys
    }
}

/// Verifiers whose trust anchors are parsed once. For each input line, the caller sets the policy on a copy.
package struct AppleVerifiers: Sendable {
    let attestations: AttestationVerifier
    /// Judges receipts under the default policy.
    package let receipts: ReceiptVerifier

    static let builtIn = AppleVerifiers(trustAnchors: .apple)

    init(trustAnchors: TrustAnchors) {
        attestations = AttestationVerifier(policy: AppAttestPolicy(appIDs: []), trustAnchors: trustAnchors)
        receipts = ReceiptVerifier(trustAnchors: trustAnchors)
    }
}
