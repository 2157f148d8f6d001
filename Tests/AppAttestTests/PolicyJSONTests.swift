import AppAttest
import StrictJSON
import Testing

@Suite struct PolicyJSONTests {
    private func fields(_ text: String) throws -> JSONFields { try JSONFields(JSONValue(parsing: text), path: "ios") }

    @Test func `an app record's object gives the policy, and is written back`() throws {
        let text = #"""
            {"app_ids":["TEAMID1234.com.example.app"],"environments":["development","production"],"categories":[2,4],\#
            "unknown_categories":"allow","require_category":true,"minimum_bundle_version":"1.2","require_bundle_version":true}
            """#
        let policy = try AppAttestPolicy(appRecord: fields(text))
        #expect(policy.appIDs.map(\.text) == ["TEAMID1234.com.example.app"])
        #expect(policy.environments == [.development, .production])
        #expect(policy.categories == [.testFlight, .appStore])
        #expect(policy.acceptsUnknownCategories && policy.requiresCategory && policy.requiresBundleVersion)
        #expect(policy.minimumBundleVersion?.text == "1.2")
        #expect(policy.requiresMacAccessControl && policy.clockLeeway == 0)
        #expect(JSONValue.object(policy.appRecordJSON).text() == text)
    }

    @Test func `an app record that names its app alone has the defaults`() throws {
        let policy = try AppAttestPolicy(appRecord: fields(#"{"app_ids": ["TEAM.app"], "categories": null}"#))
        #expect(policy == AppAttestPolicy(appIDs: policy.appIDs))
    }

    @Test(arguments: [
        (#"{}"#, "ios.app_ids"), (#"{"app_ids": []}"#, "ios.app_ids"), (#"{"app_ids": ["nodot"]}"#, "ios.app_ids"),
        (#"{"app_ids": ["T.a"], "environments": []}"#, "ios.environments"),
        (#"{"app_ids": ["T.a"], "environments": ["sandbox"]}"#, "ios.environments"),
        (#"{"app_ids": ["T.a"], "categories": [-1]}"#, "ios.categories"),
        (#"{"app_ids": ["T.a"], "minimum_bundle_version": "x"}"#, "ios.minimum_bundle_version"),
        (#"{"app_ids": ["T.a"], "clock_leeway_seconds": 60}"#, "ios.clock_leeway_seconds"),
        (#"{"app_ids": ["T.a"], "require_mac_access_control": false}"#, "ios.require_mac_access_control"),
    ])
    func `an app record that is not understood names the member`(text: String, path: String) throws {
        let fields = try fields(text)
        let error = #expect(throws: JSONError.self) { _ = try AppAttestPolicy(appRecord: fields) }
        #expect(error?.path == path)
    }

    @Test func `every member of an audit is read back as it was written`() throws {
        var policy = AppAttestPolicy(
            appIDs: Set([AppleAppID("TEAM.app")].compactMap(\.self)), environments: [.development])
        policy.requiresMacAccessControl = false
        policy.clockLeeway = 60
        let read = try AppAttestPolicy(appIDs: []).applying(JSONFields(.object(policy.json)))
        #expect(read == policy)
        let receipts = ReceiptVerifier.Policy(maximumAge: nil)
        #expect(try ReceiptVerifier.Policy().applying(JSONFields(.object(receipts.json))) == receipts)
    }
}
