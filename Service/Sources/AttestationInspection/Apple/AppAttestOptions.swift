internal import AppAttest
internal import Foundation
internal import StrictJSON

/// The policy for one line of App Attest.
///
/// `--policy` has the members of an app record's `ios` object, under that name or by themselves. Members that say nothing
/// about an object are ignored. Unknown members are errors.
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()
    /// The App IDs that are allowed; nil if neither the line nor a policy names one.
    private(set) var appIDs: Set<AppleAppID>?
    /// The environments that are allowed; nil if neither the line nor a policy names one.
    private(set) var environments: Set<AttestEnvironment>?

    /// The policy of one line.
    init(_ options: VerificationOptions, _ line: JSONFields, _ input: AppAttestInput) throws(JSONError) {
        policy = AppAttestPolicy(appIDs: [])
        for layer in try options.layers(of: .ios, over: line.ownPolicy) {
            if let members = layer.members { try apply(members) }
            guard case .line = layer else { continue }
            if let named = input.appIDs { appIDs = named }
            if let named = input.environment { environments = [named] }
        }
        policy.environments = environments ?? Set(AttestEnvironment.allCases)
    }

    private mutating func apply(_ ios: JSONFields) throws(JSONError) {
        let receiptNames = ReceiptVerifier.Policy.jsonMembers.map(\.name)
        policy = try policy.applying(ios, ignoring: receiptNames + Self.namesBesidePolicy)
        receiptPolicy = try receiptPolicy.applying(
            ios, ignoring: AppAttestPolicy.jsonMembers.map(\.name) + Self.namesBesidePolicy)
        // If the member is `null` or missing, the App IDs or environments stay unchecked.
        if ios.names.contains("app_ids") { appIDs = ios.optionalValue("app_ids").map { _ in policy.appIDs } }
        if ios.names.contains("environments") {
            environments = ios.optionalValue("environments").map { _ in policy.environments }
        }
    }

    /// Members of an app record that say nothing about an object.
    private static let namesBesidePolicy = [
        "assertions_required_on", "assertions_required_except", "flag_risk_metric_above",
    ]
}

/// Verifiers whose anchors are parsed once. Each line sets its policy on a copy.
struct AppleVerifiers: Sendable {
    let attestations: AttestationVerifier
    let receipts: ReceiptVerifier

    static let builtIn = AppleVerifiers(trustAnchors: .apple)

    init(trustAnchors: TrustAnchors) {
        attestations = AttestationVerifier(policy: AppAttestPolicy(appIDs: []), trustAnchors: trustAnchors)
        receipts = ReceiptVerifier(trustAnchors: trustAnchors)
    }
}

extension AppAttestExpectations {
    /// What a line and the policies expect of the object.
    init(_ input: AppAttestInput, _ asked: AppAttestOptions) {
        self.init()
        appIDs = asked.appIDs
        environments = asked.environments
        keyID = input.keyID
        clientDataHash = input.clientDataHash
        challenge = input.challenge
        publicKey = input.publicKey
        attestedExtensions = input.attestedExtensions
        previousCounter = input.previousCounter
        date = input.validAt
    }
}

extension Verdict {
    /// The result of an audit.
    init<Object>(_ audit: AppAttestAudit<Object>, facts: JSONObject) {
        self.init(
            audit.refusal == nil ? .verified : .refused, code: audit.refusal?.code.rawValue,
            step: audit.refusal?.step.rawValue, unchecked: audit.unchecked.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }

    /// A line without an object.
    static let nothingToCheck = Verdict(
        .couldNotCheck, unchecked: ["object"], checks: [Check("object", .unchecked, detail: "no object is given")])
}
