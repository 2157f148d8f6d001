package import AppAttest
internal import Foundation
package import StrictJSON

/// What options mean for App Attest.
///
/// `--policy` may hold the members of an app record's `ios` object under that name; those that say nothing about an object
/// are ignored. What an input line names itself, its app and its environment, goes before what the policy allows.
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()
    /// The App IDs that the policy allows; nil where it names none.
    private(set) var appIDs: Set<AppID>?
    /// The environments that the policy allows; nil where it names none.
    private(set) var environments: Set<AttestEnvironment>?

    init(_ policy: JSONValue?) throws(JSONError) {
        self.policy = AppAttestPolicy(appIDs: [], environments: Set(AttestEnvironment.allCases))
        guard let policy, let ios = try JSONFields(policy).optionalObject("ios") else { return }
        appIDs = try ios.set("app_ids") { $0.string.flatMap { AppID($0) } }
        environments = try ios.set("environments") { $0.string.flatMap { AttestEnvironment(rawValue: $0) } }
        if let environments { self.policy.environments = environments }
        if let categories = try ios.set("categories", { $0.integer.flatMap { UInt32(exactly: $0) } }) {
            self.policy.categories = Set(categories.map(ValidationCategory.init(rawValue:)))
        }
        self.policy.minimumBundleVersion = try ios.optionalString("minimum_bundle_version").map {
            text throws(JSONError) in
            guard let version = BundleVersion(text) else {
                throw JSONError(.wrongType, path: ios.pathOf("minimum_bundle_version"))
            }
            return version
        }
        self.policy.requiresCategory = try ios.optionalBool("require_category") ?? false
        self.policy.requiresBundleVersion = try ios.optionalBool("require_bundle_version") ?? false
        self.policy.requiresMacAccessControl = try ios.optionalBool("require_mac_access_control") ?? true
        self.policy.clockLeeway = TimeInterval(
            try ios.optionalInteger("clock_leeway_seconds", in: 0...Int64(UInt32.max)) ?? 0)
        if ios.names.contains("receipt_maximum_age_seconds") {
            let age = try ios.optionalInteger("receipt_maximum_age_seconds", in: 0...Int64(UInt32.max))
            receiptPolicy.maximumAge = age.map { TimeInterval($0) }
        }
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

extension JSONFields {
    fileprivate func set<Element: Hashable>(
        _ name: String, _ read: (JSONValue) -> Element?
    ) throws(JSONError) -> Set<Element>? {
        guard let values = try optionalArray(name) else { return nil }
        let elements = values.compactMap(read)
        guard elements.count == values.count else { throw JSONError(.wrongType, path: pathOf(name)) }
        return Set(elements)
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
    init(_ error: AppAttestError, facts: JSONObject = JSONObject(), list: CheckList = CheckList()) {
        self.init(
            .refused, code: error.code.rawValue, step: error.step.rawValue, unchecked: list.unchecked, facts: facts,
            checks: list.checks)
    }

    /// Nothing to look at.
    static let nothingToCheck = Verdict(
        .couldNotCheck, unchecked: ["object"], checks: [Check("object", .unchecked, detail: "no object is given")])
}
