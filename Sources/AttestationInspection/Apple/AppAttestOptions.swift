internal import AppAttest
internal import Foundation
internal import StrictJSON

/// What options mean for App Attest.
///
/// `--policy` may hold the members of an app record's `ios` object, under that name: `categories`, `minimum_bundle_version`, and for
/// receipts `receipt_maximum_age_seconds` (null: of any age).
struct AppAttestOptions {
    var policy: AppAttestPolicy
    var receiptPolicy = ReceiptVerifier.Policy()

    init(_ policy: JSONValue?) throws(JSONError) {
        self.policy = AppAttestPolicy(appIDs: [], environments: Set(AttestEnvironment.allCases))
        guard let policy, let ios = try JSONFields(policy).optionalObject("ios") else { return }
        if let categories = try ios.optionalArray("categories") {
            let numbers = categories.compactMap { $0.integer.flatMap { UInt32(exactly: $0) } }
            guard numbers.count == categories.count else {
                throw JSONError(.wrongType, path: ios.pathOf("categories"))
            }
            self.policy.categories = Set(numbers.map(ValidationCategory.init(rawValue:)))
        }
        self.policy.minimumBundleVersion = try ios.optionalString("minimum_bundle_version").map {
            text throws(JSONError) in
            guard let version = BundleVersion(text) else {
                throw JSONError(.wrongType, path: ios.pathOf("minimum_bundle_version"))
            }
            return version
        }
        if ios.names.contains("receipt_maximum_age_seconds") {
            let age = try ios.optionalInteger("receipt_maximum_age_seconds", in: 0...Int64(UInt32.max))
            receiptPolicy.maximumAge = age.map { TimeInterval($0) }
        }
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
