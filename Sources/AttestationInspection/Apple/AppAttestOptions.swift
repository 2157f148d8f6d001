package import AppAttest
internal import Foundation
package import StrictJSON

/// What options mean for App Attest.
///
/// `--policy` may hold the members of an app record's `ios` object, under that name or by themselves; those that say nothing
/// about an object are ignored. What an input line names itself, its app and its environment, goes before what the policy allows.
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()
    /// The App IDs that the policy allows; nil where it names none.
    private(set) var appIDs: Set<AppID>?
    /// The environments that the policy allows; nil where it names none.
    private(set) var environments: Set<AttestEnvironment>?

    init(_ policy: JSONValue?) throws(JSONError) {
        self.policy = AppAttestPolicy(appIDs: [], environments: Set(AttestEnvironment.allCases))
        guard let policy else { return }
        let fields = try JSONFields(policy)
        let ios = AndroidInputLine.holdsSeveralPolicies(fields) ? try fields.optionalObject("ios") : fields
        if let ios { try apply(ios) }
    }

    /// The same, with what an input line's own `policy` says in place of single members.
    init(_ policy: JSONValue?, _ line: JSONFields) throws(JSONError) {
        try self.init(policy)
        if let own = try line.ownPolicy() { try apply(own) }
    }

    private mutating func apply(_ ios: JSONFields) throws(JSONError) {
        try ios.overlay("app_ids", on: &appIDs) { $0.set { $0.string.flatMap { AppID($0) } } }
        try ios.overlay("environments", on: &environments) { value in
            value.set { $0.string.flatMap { AttestEnvironment(rawValue: $0) } }
        }
        policy.environments = environments ?? Set(AttestEnvironment.allCases)
        try ios.overlay("categories", on: &policy.categories, none: ValidationCategory.documented) { value in
            value.set { $0.integer.flatMap { UInt32(exactly: $0) }.map(ValidationCategory.init(rawValue:)) }
        }
        try ios.overlay("minimum_bundle_version", on: &policy.minimumBundleVersion) {
            $0.string.flatMap { BundleVersion($0) }
        }
        try ios.overlay("require_category", on: &policy.requiresCategory, none: false, \.bool)
        try ios.overlay("require_bundle_version", on: &policy.requiresBundleVersion, none: false, \.bool)
        try ios.overlay("require_mac_access_control", on: &policy.requiresMacAccessControl, none: true, \.bool)
        try ios.overlay("clock_leeway_seconds", on: &policy.clockLeeway, none: 0, \.seconds)
        try ios.overlay("receipt_maximum_age_seconds", on: &receiptPolicy.maximumAge, \.seconds)
    }
}

extension JSONValue {
    fileprivate var seconds: TimeInterval? {
        integer.flatMap { (0...Int64(UInt32.max)).contains($0) ? TimeInterval($0) : nil }
    }
}

extension AppAttestPolicy {
    /// Every member, as `--policy` takes it.
    package var json: JSONObject {
        JSONObject([
            ("app_ids", .array(appIDs.map(\.text).sorted().map { .string($0) })),
            ("environments", .array(environments.map(\.rawValue).sorted().map { .string($0) })),
            ("categories", .array(categories.map(\.rawValue).sorted().map { .integer($0) })),
            ("minimum_bundle_version", minimumBundleVersion.map { .string($0.text) } ?? .null),
            ("require_category", .bool(requiresCategory)), ("require_bundle_version", .bool(requiresBundleVersion)),
            ("require_mac_access_control", .bool(requiresMacAccessControl)),
            ("clock_leeway_seconds", .integer(Int64(exactly: clockLeeway.rounded()) ?? 0)),
        ])
    }
}

/// The checks with their anchors, which are prepared once.
struct AppleSteps: Sendable {
    let attestation: AttestationSteps
    let receipt: ReceiptSteps

    static let builtIn = AppleSteps(.apple)

    init(_ anchors: TrustAnchors) {
        attestation = AttestationSteps(trustAnchors: anchors)
        receipt = ReceiptSteps(trustAnchors: anchors)
    }
}

extension Verdict {
    /// A refusal for what a check threw.
    init(_ error: AppAttestError, facts: JSONObject = JSONObject(), list: CheckList) {
        self.init(
            .refused, code: error.code.rawValue, step: error.step.rawValue, unchecked: list.unchecked, facts: facts,
            checks: list.checks)
    }

    /// Nothing to look at.
    static let nothingToCheck = Verdict(
        .couldNotCheck, unchecked: ["object"], checks: [Check("object", .unchecked, detail: "no object is given")])
}
