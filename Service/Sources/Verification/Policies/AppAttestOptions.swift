internal import AppAttest
internal import StrictJSON

/// The policy for one input line that has an App Attest object.
///
/// `--policy` has the members of an app record's `ios` object, in an object `ios` or at the top level. Members that do not
/// decide whether an attestation, an assertion or a receipt verifies are ignored. Unknown members are errors.
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()
    /// The App IDs that are allowed; nil: they are not checked.
    private(set) var appIDs: Set<AppleAppID>?
    /// The environments that are allowed; nil: they are not checked.
    private(set) var environments: Set<AttestEnvironment>?

    /// The policy of one line.
    init(_ options: VerificationOptions, _ evidence: AppAttestEvidence) throws(JSONError) {
        policy = AppAttestPolicy(appIDs: [])
        for layer in try options.layers(of: .ios, over: evidence.ownPolicy) {
            if let members = layer.members { try apply(members) }
            guard case .line = layer else { continue }
            if let named = evidence.expected.appIDs { appIDs = named }
            if let named = evidence.expected.environments { environments = named }
        }
        policy.environments = environments ?? Set(AttestEnvironment.allCases)
    }

    private mutating func apply(_ ios: JSONFields) throws(JSONError) {
        let receiptNames = ReceiptVerifier.Policy.jsonMembers.map(\.name)
        policy = try policy.applying(ios, ignoring: receiptNames + Self.namesBesidePolicy)
        receiptPolicy = try receiptPolicy.applying(
            ios, ignoring: AppAttestPolicy.jsonMembers.map(\.name) + Self.namesBesidePolicy)
        // If the member is `null`, App IDs or environments are not checked. If it is missing, the earlier layer still applies.
        if ios.names.contains("app_ids") { appIDs = ios.optionalValue("app_ids").map { _ in policy.appIDs } }
        if ios.names.contains("environments") {
            environments = ios.optionalValue("environments").map { _ in policy.environments }
        }
    }

    /// Members of `ios` that do not decide whether an attestation, an assertion or a receipt verifies. They are ignored.
    private static let namesBesidePolicy = [
        "assertions_required_on", "assertions_required_except", "flag_risk_metric_above",
    ]
}
