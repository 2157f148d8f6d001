internal import Foundation
public import StrictJSON

/// The JSON form of the policy: members of an app record's `ios` object, and further members for audits.
extension AppAttestPolicy: JSONPolicy {
    /// Every member. `null` restores the default. The default of `app_ids` accepts no app.
    public static let jsonMembers: [JSONMember<AppAttestPolicy>] = [
        JSONMember(
            "app_ids", \.appIDs, .set(of: appID), null: [], inAppRecord: .only(.set(of: appID, atLeast: 1)),
            .everyday("The App IDs that may attest: team id and bundle id, such as `TEAMID1234.com.example.app`.")
        ).required(),
        JSONMember(
            "environments", \.environments, .set(of: .choice), null: [.production],
            inAppRecord: .only(.set(of: .choice, atLeast: 1)),
            .everyday("The App Attest environments whose keys are accepted. Xcode's builds use `development`.")),
        JSONMember(
            "categories", \.categories, .set(of: .category), null: ValidationCategory.documented,
            .advanced(
                "The validation categories that are accepted if a device proves one. Without it: those that Apple documents, except 0."
            )
        ).nullInAppRecord { $0.categories == ValidationCategory.documented },
        JSONMember(
            "unknown_categories", \.acceptsUnknownCategories, .choice([true, false]) { $0 ? "allow" : "refuse" },
            null: false,
            .advanced("Whether a category is accepted that neither Apple's documentation nor `categories` names.")),
        JSONMember(
            "require_category", \.requiresCategory, .bool, null: false,
            .advanced(
                "Refuses a device that proves no category: one before iOS 27 or macOS 27, and assertions by a key that was attested before."
            )
        ),
        JSONMember(
            "minimum_bundle_version", \.minimumBundleVersion, .text({ BundleVersion($0) }, { $0.text }),
            .advanced("The lowest bundle version that is accepted if a device proves one.")),
        JSONMember(
            "require_bundle_version", \.requiresBundleVersion, .bool, null: false,
            .advanced("Refuses a device that proves no bundle version.")),
        JSONMember("require_mac_access_control", \.requiresMacAccessControl, .bool, null: true, inAppRecord: .none),
        JSONMember("clock_leeway_seconds", \.clockLeeway, .seconds, null: 0, inAppRecord: .none),
    ]

    private static let appID = JSONCoding<AppleAppID>.text({ AppleAppID($0) }, { $0.text })

    /// The policy in an app record's `ios` object.
    ///
    /// - Parameters:
    ///   - fields: the object. `app_ids` must be there; other absent members have the defaults of
    ///     ``init(appIDs:environments:categories:acceptsUnknownCategories:minimumBundleVersion:requiresCategory:requiresBundleVersion:requiresMacAccessControl:clockLeeway:)``.
    ///   - others: names of members of the object that are not part of the policy. They are ignored.
    public init(appRecord fields: JSONFields, ignoring others: [String] = []) throws(JSONError) {
        self = try AppAttestPolicy(appIDs: []).applying(appRecord: fields, ignoring: others)
    }
}

/// The JSON form of the policy for receipts. Only audits use it.
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
