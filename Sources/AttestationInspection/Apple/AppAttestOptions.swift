public import AppAttest
internal import Foundation
public import StrictJSON

/// What options mean for App Attest.
///
/// `--policy` may hold the members of an app record's `ios` object, under that name or by themselves. Those that say nothing
/// about an object are ignored, and unknown ones are errors.
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()
    /// The App IDs that are allowed; nil where neither the line nor a policy names one.
    private(set) var appIDs: Set<AppID>?
    /// The environments that are allowed; nil where neither the line nor a policy names one.
    private(set) var environments: Set<AttestEnvironment>?

    /// What holds for one line.
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
        try ios.allowOnly(
            "app_ids", "environments", "categories", "unknown_categories", "require_category",
            "minimum_bundle_version", "require_bundle_version", "require_mac_access_control", "clock_leeway_seconds",
            "receipt_maximum_age_seconds",
            // Of an app record, and not about an object.
            "assertions_required_on", "assertions_required_except", "flag_risk_metric_above")
        try ios.overlay("app_ids", on: &appIDs) { $0.set { $0.string.flatMap { AppID($0) } } }
        try ios.overlay("environments", on: &environments) { value in
            value.set { $0.string.flatMap { AttestEnvironment(rawValue: $0) } }
        }
        try ios.overlay("categories", on: &policy.categories, none: ValidationCategory.documented) { value in
            value.set { $0.integer.flatMap { UInt32(exactly: $0) }.map(ValidationCategory.init(rawValue:)) }
        }
        try ios.overlay("unknown_categories", on: &policy.acceptsUnknownCategories, none: false) { value in
            ["allow": true, "refuse": false][value.string ?? ""]
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
    @_spi(Service) public var json: JSONObject {
        JSONObject([
            ("app_ids", .array(appIDs.map(\.text).sorted().map { .string($0) })),
            ("environments", .array(environments.map(\.rawValue).sorted().map { .string($0) })),
            ("categories", .array(categories.map(\.rawValue).sorted().map { .integer($0) })),
            ("unknown_categories", .string(acceptsUnknownCategories ? "allow" : "refuse")),
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
