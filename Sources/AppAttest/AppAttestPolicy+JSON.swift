internal import Foundation
public import StrictJSON

/// The members of an app record's `ios` object that are policy, and further members for audits.
extension AppAttestPolicy: JSONPolicy {
    /// Every member. `null` restores the default. The default of `app_ids` accepts no app.
    public static let jsonMembers: [JSONMember<AppAttestPolicy>] = [
        JSONMember(
            "app_ids", \.appIDs, .set(of: .text({ AppleAppID($0) }, { $0.text })), null: [],
            inAppRecord: .only { !$0.isEmpty }),
        JSONMember(
            "environments", \.environments, .set(of: .choice), null: [.production],
            inAppRecord: .only { !$0.isEmpty }),
        JSONMember("categories", \.categories, .set(of: .category), null: ValidationCategory.documented)
            .nullInAppRecord { $0.categories == ValidationCategory.documented },
        JSONMember(
            "unknown_categories", \.acceptsUnknownCategories,
            .text({ ["allow": true, "refuse": false][$0] }, { $0 ? "allow" : "refuse" }), null: false),
        JSONMember("require_category", \.requiresCategory, .bool, null: false),
        JSONMember("minimum_bundle_version", \.minimumBundleVersion, .text({ BundleVersion($0) }, { $0.text })),
        JSONMember("require_bundle_version", \.requiresBundleVersion, .bool, null: false),
        JSONMember("require_mac_access_control", \.requiresMacAccessControl, .bool, null: true, inAppRecord: .none),
        JSONMember("clock_leeway_seconds", \.clockLeeway, .seconds, null: 0, inAppRecord: .none),
    ]

    /// The policy in an app record's `ios` object.
    ///
    /// - Parameters:
    ///   - fields: the object. `app_ids` must be there; other absent members have the defaults of
    ///     ``init(appIDs:environments:categories:acceptsUnknownCategories:minimumBundleVersion:requiresCategory:requiresBundleVersion:requiresMacAccessControl:clockLeeway:)``.
    ///   - others: names of members of the record that are not policy.
    public init(appRecord fields: JSONFields, ignoring others: [String] = []) throws(JSONError) {
        _ = try fields.value("app_ids")
        self = try AppAttestPolicy(appIDs: []).applying(appRecord: fields, ignoring: others)
    }
}

/// The policy for receipts, for audits.
extension ReceiptVerifier.Policy: JSONPolicy {
    /// `receipt_maximum_age_seconds`; `null` accepts receipts of any age.
    public static let jsonMembers: [JSONMember<ReceiptVerifier.Policy>] = [
        JSONMember("receipt_maximum_age_seconds", \.maximumAge, .seconds, inAppRecord: .none)
    ]
}

extension JSONCoding where Value == ValidationCategory {
    fileprivate static var category: Self {
        JSONCoding<Int64>.integer(in: 0...Int64(UInt32.max))
            .map({ ValidationCategory(rawValue: UInt32($0)) }, back: { Int64($0.rawValue) })
    }
}

extension JSONCoding where Value == TimeInterval {
    fileprivate static var seconds: Self {
        JSONCoding<Int64>.integer(in: 0...Int64(UInt32.max))
            .map({ TimeInterval($0) }, back: { Int64(exactly: $0.rounded()) ?? 0 })
    }
}
