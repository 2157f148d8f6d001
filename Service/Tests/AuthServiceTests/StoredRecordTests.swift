import AndroidKeyAttestation
import AppAttest
import AuthContract
import AuthService
import PlayIntegrity
import StoreConformance
import StrictJSON
import Testing

/// Records that an older version stored, sealed with the service key of ``World``. Do not regenerate them: real databases hold such
/// records.
@Suite struct StoredRecordTests {
    private static func stored(_ sealed: String, _ masked: String) throws -> StoredApp {
        let json = try JSONValue(parsing: masked)
        let id = try #require(json.object?["app_id"]?.string)
        return StoredApp(appID: try AppID(id), sealedJSON: #"{"record":\#(masked),"sealed":"\#(sealed)"}"#)
    }

    /// The masked record, with masks as older versions wrote them.
    private static func masked(_ record: AppRecord) async throws -> String {
        JSONValue.object(record.json(secrets: .masked(try await World().service.apps.mask))).text()
            .replacing(/\(secret [0-9a-f]{16}\)/, with: "(secret)")
    }

    private static func opened(_ stored: StoredApp) async throws -> AppRecord {
        let world = try await World(["app_id": "com.example.first"])
        let event = AuditEvent(.appAdded, at: world.clock.now, actor: "test")
        #expect(try await world.stores.insert(stored, recording: event))
        return try #require(try await world.service.apps.record(stored.appID))
    }

    @Test func `a stored record with every default opens, and is written byte for byte as it was`() async throws {
        let record = try await Self.opened(Self.stored(Sealed.small, Sealed.smallMasked))
        #expect(try await Self.masked(record) == Sealed.smallMasked)
    }

    @Test
    func `a stored record without a default opens, and lists that are sets come back ascending, each element once`()
        async throws
    {
        let record = try await Self.opened(Self.stored(Sealed.everything, Sealed.everythingMasked))
        var expected = try JSONValue(parsing: Sealed.everythingMasked)
        for (path, value) in [
            (["ios", "categories"], [2, 4, 99]),
            (
                ["android", "play_integrity", "device_labels"], ["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"]
            ), (["android", "key_attestation", "boot_states"], ["SelfSigned", "Verified"]),
            (
                ["android", "key_attestation", "boot_keys"],
                [.string(String(repeating: "0c", count: 32)), .string(String(repeating: "ab", count: 32))]
            ),
        ] as [([String], JSONValue)] {
            expected = AppRecordTests.setting(expected, path, value)
        }
        #expect(try await Self.masked(record) == expected.text())
        // The packages keep the order in which Google is asked about them.
        #expect(record.android?.packages == ["com.example.b", "com.example.a"])
        #expect(
            record.android?.playIntegrity.policy.deviceLabels == ["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"])
    }

    @Test func `categories that are not named stay null, so that a later version's default counts`() throws {
        let record = try World.record()
        #expect(record.ios?.policy.categories == ValidationCategory.documented)
        #expect(record.json(secrets: .plain)["ios"]?.object?["categories"] == .null)
        var none = record
        none.ios?.policy.categories = []
        #expect(none.json(secrets: .plain)["ios"]?.object?["categories"] == [])
        #expect(try AppRecord(JSONFields(.object(none.json(secrets: .plain)))) == none)
    }

    @Test func `a record whose policy its JSON cannot express is not stored`() async throws {
        let world = try await World(["app_id": "com.example.first"])
        var changes: [AppRecord] = []
        for change in [
            { $0.ios?.policy.requiresMacAccessControl = false }, { $0.ios?.policy.clockLeeway = 60 },
            { $0.android?.playIntegrity.policy.recognitionVerdicts = nil },
            { $0.android?.playIntegrity.policy.certificateDigests = nil },
            { $0.android?.keyAttestation.policy.purposes = nil }, { $0.android?.keyAttestation.policy.packages = nil },
            { $0.android?.keyAttestation.policy.requiresGeneratedKey = false },
        ] as [(inout AppRecord) -> Void] {
            var record = try World.record()
            change(&record)
            changes.append(record)
        }
        for record in changes {
            await #expect(throws: ContractError.self) { try await world.service.apps.add(record, actor: "test") }
        }
        #expect(try await world.service.apps.records().count == 1)
    }
}

private enum Sealed {
    /// A record with only the required members.
    static let small = #"""
        22OL61dIdELAChgUCvH9yF7JDwugdk/W7zgzHvkd7LwXXBeU4FNHPQbPnqFTUjtfEGZxG08rs0GvncZ5CGDqVnB7bonlZeFrrc4G9/jj0fkp/WaHOtmZ\#
        EDj0LMYlWeD7YgSOxoZxWrvG+XYELjFUdOXv6c7Vghec/OXKZ3oY1Zd5GUpQcKKP08T4GSvyeAoieVEsi0627c6apamLwx/+wIxTShya7ha6Ox2jiSZJ\#
        TegR1teWrj+q9RKfUvAapuROjjE7BO1FEYEKhL2MPVy0VXEgZYgpbiK20oPMn5KSl6nQVxtz+lfbSD1kjptbvcYlnlvSn6VEOL0Y+bqn/BRmOG0qzi/W\#
        4R0zMNiDbUMCp5YsZ2NNTomHEaECH1KeDuji0wMTOJkOM6kf6m8IvIuotOTVva3S8l7g+5HEjfNQm6ayAs891IolPLwXXnoC+L7npNMnHJutfap7Sbog\#
        OUQ8fueBeS+iZm/Afzc7qJ3Zms9OypPBlANBXYrz9p9zBDcqKMvH7zKTRRe/NfS6tCesfQhhbbBoGG/EFyHSCIimDORhhh8HXGJpazWgw58r4xCQ8vXr\#
        6+nD+Tkh9x+ka0OiSd7OU3BmYOmmLrCJSHAQD+JOx6LvmrGp9coKxAnLW/983EaMy6ZhOF6SMb0Kz0+hc4yNAdhztAW5yJ3LfHP81bvdiadWp/arII0y\#
        IypUglGu3u8qif47TUuO8iVH+9dv7X5FVRSZR4Du/8HR1m9AUZAto1hEBN0GWRkimYIushrQklbuybDysrkyQ6j9+s0S2GwTGZAfrS4OLHRIWqYehF45\#
        plV941Eml/tXdNZlSxu51hKO3q9wDe950F+VrXl9bs89yYWq0mq2uUf9IodxKF6W7FkubyphkmnfUUvFzO93owDopHKRZs/5Hr+1n/HCA5VwfCWmjOWa\#
        uAS8NdZUtYt+kKXKL1ZlkIb0XpVEcjsLJ8jPj95A9wRtUaGaK7BfOVpeo3rT7dKfGJJIQSOhtbLzKdaQYhc3qeDOyyjDvM7oDxfQoc5RbQe+UqbbvK9X\#
        qDxaEUkcJo6rilAIViNHBgOyEiraNlmKxKsRc9tr1Gq5Aa0bQjNI5e7ai+0VPKksNudmcZPtuqSM149wSpsJDSponEn7CPzKyxuD3Wx+Q8zHnKLHXhnz\#
        oOPQijtsivZ1PVQ8Q62V0zmom9AM348Ph5rcwfluK2u/67/4Ye196gMREST0G5YTDjvVZvrXsZPH/qTcMmcED0h8mZO9Yo3CsTP7lZHTWv4FMk+ZDiYy\#
        UueD3+645RGrRv3kmJuUy9nkFFeyfjwXC9LTaWNYXUqgqJCNO5qVEis0i+RY0vzvqSOgApXiITvj46RiXV3Ne6k/33ulaRJRIrNonFVxSFH/pyRIiB9y\#
        Pe9BftuRK/c0TycuSFb1hskkdF5mpKD+pUh80A9FA26au7BNkhvQ9VVm2elVf6AxEqfQJnrWSBv36l2CLR+nA9Uvt7rwM9GD9RwIjxuvjhKtVm2W2lEo\#
        UfOoBW6tQT4sVPC0+uycGPInDPiAE03BO/nNpO9yPauhaxJA2W9PrzFbnFkJ+vTwNxmk1KFXln20yGwV54G3ZejspLezOpdba6agvToXN9VfMaz70ExO\#
        j25NTHJLHk5dbLNv2PBJt1FO/fBO+EqHNYtOimm5SWVw9l6cDxKWHJ3NHkP+rVoZcsdE3WcA7l34wct8P9PXEJpVEa6IT6M/5cr2z6HCgNGT6gw9rSGl\#
        Or3mlAmLZrPkKlhOkD8JDclPGdmwbe5HeQ9ADTvd803LNt10IJRJVC7tbyiGcL2Bp5qKhkfhH5+F/kThHPVTJ14F9PP2Boys9PoAqfC2i5+j3YU4n1ET\#
        UiaUpEwPu2RPwW2kZrpX/uCHYuoNuVgWC+miqVSJK4y6LU3rOmHFJ7WzJBAIKmJ4x1Iz4cB9/bZakVumPWdwDmMbu5HpvxQKk0cKQBb4804l9j055Jrm\#
        TJ/iN0V+HRvjsS46MlwGlgsL02QPd6sxFilYkc1GzmZPQqA1Z4sgJ/R+jDRHOhuxiAqI3W+bBG57djyXurj8cU16bRaezImsVZqrH/w3jSINGo+jqWJM\#
        zgWLVwfqS0RM8gOW+MG1j/JrplLe3dZ2/0rDpgpS98aTu/5H5eKKz8wQ0ZnCtbncujqBT747cTYklr6VLEYFfpvb0vlpIsUKmjWWlQZl0qZF2xZoKo+d\#
        CbIl+ihUntsL
        """#

    /// `small` with masked secrets.
    static let smallMasked = #"""
        {"app_id":"com.example.small","name":"com.example.small","enabled":true,"mode":"enforce","build_channel":"production\#
        ","development_integrity_allowed":false,"ios":{"app_ids":["TEAMID1234.com.example.app"],"environments":["production"\#
        ],"trust_anchors":[],"categories":null,"unknown_categories":"refuse","require_category":false,"minimum_bundle_versio\#
        n":null,"require_bundle_version":false,"assertions_required_on":[],"assertions_required_except":null,"flag_risk_metr\#
        ic_above":null},"android":{"packages":["com.example.app"],"certificate_digests":["ERERERERERERERERERERERERERERERERER\#
        ERERERERE"],"minimum_version_code":null,"proof":"play_integrity","trust_anchors":[],"play_integrity":{"keys":[],"ser\#
        vice_account":null,"device_labels":["MEETS_DEVICE_INTEGRITY"],"require_licensed":false,"maximum_age_seconds":600,"al\#
        low_test_responses":false,"refuse_play_protect":[],"refuse_app_access_risk":[],"maximum_activity_level":null,"refuse\#
        _device_recall":[]},"key_attestation":{"minimum_security_level":"TrustedEnvironment","boot_states":["Verified"],"boo\#
        t_keys":[],"maximum_patch_age_days":null,"status_list":null}},"signature":{"minimum_scheme":1,"past_window_seconds":\#
        300,"future_window_seconds":60,"unsigned_query":"refuse_on_writes","replay_on_reads":true,"path_prefix_strip":null,"\#
        authorities":[],"token_audiences":[]},"keys":{"maximum_age_days":null,"grace_days":7,"overlap_seconds":60,"reattest_\#
        on_rotation":false,"rebind_on_rotation":false,"key_proof":"optional","compromise":null},"registration":{"approval":"\#
        auto","provider_outage":"refuse","maximum_pending":10000,"maximum_unproven":10000},"evidence":{"record":false,"keep_\#
        days":30}}
        """#

    /// A record in which almost no member has its default. Some lists are not in ascending order, and one has an element twice.
    static let everything = #"""
        fkzontXidw4DzU7Q9Lp0mfIRfqKzR66CZO/UJEB3N0cVK7Axykmj9WN+YdfTjUplymIwt/GmKfA+dXynSfkWDDvGPb6cLehxCYGLYoLrGJPHKvNDpgPU\#
        qmcdSFMAicHIJC1lZYIk8y1u5OT8sOHG1ljtnEgiCEjfUxNPKkflQQ9dw+Ti8lLskVEGJs4ojQXg1eC8ZFCsP9D5fnQt5nSSxU/2V3udPhmAbHmLWkcG\#
        qtZV8q9/dB247zkQRMq6CH2Sp4l9gggqtyeGZfoES3DgdeBVyOHbcGUOEq7UG2K9JwgADn8Q8ISSvdNynPJ9B7tSOxN2/fPN88mL+iL1g5i6dVyN93Ty\#
        mKIF7wxeY8vvqoo5+t7WYztzpbgKUr4RPAvbf5aA4COj/J8FIzNErcJzuK72bA0M3yN68fwh+AEbQDR2kXarO+hYgEBnus6DNT3X5UIVGfnch5BTxWbI\#
        OjS6SuIL5Vp7QIb5RJE120qaAkoObQpeaLj8/IHIDHAfgwl+2mp+in7ReUB4gniAvSmIGzghACwZOpbGUu64NDCe5CPRStbOzXXA1TU27m/WB4Ax7u0S\#
        +SBOHg9Zktr/lgNtp/e2XNWI6Oh+29gm9fAO4qOZzER/pB/3ZSzH5AN68Fsd/PR990EueTdd4zVfFgLiKKATetBMTQUXoVD061mgNZ3IP1B9AFXilH2Z\#
        5+17XB8MAi5ST04jMKxMU2LWN0JuXIU+uEXmHVv2YDhukZBlxaQ3Kz9UVK3L6fIX6KvBmNfddl1P8gXRUB5YbtgVr/r7QTD86ZSciaOOt2xyK9JGrRFS\#
        T2P4MdFobsmS7jKjWzvcJpuACKXGtznVR3290f0hmvIQmnZjgx/KJfVpr7FaRRoR85jgGZvGHbXS+rh+oqgtsmBQBy2hxJDAPQJn/6V3LZJJqpTMsLI3\#
        3jflJrGFGv6OMVVYx3CZ39qUy+y2/sMWf1ZAHZ3z5I6xhpc4nNuw4Yj9WyHCk9jXoPg8nUEJrnqBZT2Q+97RbNISEJwJOzTOBonszohjKYhbEubxOixx\#
        ds3nQMKibjyu+z9/aiXcMqS5tcbDaYeN5C5RYv5eoGHjVQgvvbFKOXQ0P9gFpt5wp5IGdcdxDYkUZf9fBqm/E64Mdf6wwezjDSKQm7y+7o0O5ad00BLn\#
        tdKcodE+jZTPPOVmsIlvfQKVzFCS27JZeCNqm4e86RZ1yMrPJXk2/qHQqVUTuBHex2YPLmU7o4mlVyPdOzc28LqKW99X7QfN5nxYwN0SBdoMW5Z/Mdjy\#
        8+7G0UgVfwVlhbuqbBz7X4hsiFXMFgILPu2RS79o+68dhBci5e8RxIiNJGHyNkgkE6Rk/5xJr1S28HJcqGMFaTmznPlhoorGNTF/ot6ScMEiAGrXB8TY\#
        AJdgvOl+YY58J8Yb0IYfL2me6qJrom8+8ZYwFKV7F5tp9tWIicR3jWC5fIRqr+7enMPuw5Du0u6WCWF8yOGQn7NPdoqoYPeGEnV8JQUwJ5a9xhD3OBCe\#
        lwZV3RRWoe5u5BO/OEoDKAV3ucyFypTrehXnJgmKVcAu/UF6XVqFnGpQ6LHOCVMZqIBTI04rCtR3O9E30Fa6/sysBbOVvrQ190wvnyJRWjot9kITvqyv\#
        XIXuMVzox1dnSYiK84AjDvZZFDN7PhWYsaepAuC6Le4LDUBR34Bjr3xHxxnXhWhNqKnyDhtO2aJ/POpOYcTqLyCUk86Qhq7rsdChQpRfSvTqIgGOqaNZ\#
        A4UFJUNlLJd+qfAe7JJRSs3H9I1elO4ji72/GvyPk+9hR37yXiHXAdFCIg1+EC9RaOdD0JCKjHQ2MV6aZkuS9inmHmemx/9e3W4WA/O824urMpYOlnoW\#
        ac7nnNTBHUCX5oOba7ZF/GW4wYQD59bagitS6XqUUIvq2jKtg48cQPM6bTgGxSYrGrkE6gxrddBHvYlEIK8q6n6UmbTwunXzQXp72LE4umGjcyZtYGLN\#
        wCwsiZuKRZ3IxzTz+6rc/DzMBWtkeoSud6p4RY8CU3OvL5WuPwoOsv0GkEIav5RBWwtMFkdFrKB1u/GI5FfuO6dLe6sinbTW+MSQ8ArSJlU3RsYwENln\#
        wAqnH3osDChX2o63Dz8K5+YI+ROfHyDb0Q5GATJW+Hl7iAW/tcdIX07Y2AwkN/njfBZsjsA8MKMuP3CghzwuKyf+ZBNZVa2cz7bvFgjciv97tSgCjmy6\#
        ZaSszzOdFyDGl5cVp+/3NLGbpUCMJ3nLeqZn+MUJSzx02skKZUS6PPIZtqmY5Sx5dmqBi65ZhkNlt+OUsouyM/33+keB++owiBBwvzilHH8qwQkM/Jtz\#
        I1ZWuQrqw0FCNdQ6vN1hNim+gZ4Z9kDeAAGj8j8OUDlLRqm0mGqma+ADyvMIIMH1bCu9kSsM4kTeWpzLYQK4w0GhTwW9yuvbJhXjjh3rsHF7Y852DKSi\#
        OwI+uxrCSye1N4CQKiiZLDPAemMvhgCmw9uD5b/0Dxwk2xbtWKNbU9trgbph+5nYXaRwWyMLFO3HM+gv64RzYMhYQzErFn1f+KZGbbr/79qzlOY/Wbxv\#
        DQhCwZC1ItpA4o3ztWFQqWAYAB/2//nYfZ6tRlmODzIdNrVtoaDWZ7AizjRuiMfpPL5hiEPsoU8Q3wZjkTlaoVU0tVMIffIEej9WHOVd4TDR4lp+oZTf\#
        rBL02npMBdKhOSJJ3ZZL8/Z63sPa+Uy0faV210zf2lSqj2dok4KVeB/8PQigUXgOmJsyIjWJ277YujRmLAd7JCzwUMDWy+4jHGJzuz4ruO6OA/FmKFUd\#
        aBqczH8wY2d0zI1wlk4gv21Tv2kzQrF3U15lYyws4fGZLarcNWLazPB3qERnUQZW167xJjC1RqNq4n23hWXtCFxUwrujk81pzH82Duz0Yb+DRo15z2hS\#
        aDmJHIbIy988Y7TmbCrBUQNGXqxehYc1wbBa/4f6ZniqZXbjcygqkCuJza9XxQq/irb5gvzpeT1KHLQHnjDH9e1OoKl1Y0r5Uw==
        """#

    /// `everything` with masked secrets.
    static let everythingMasked = #"""
        {"app_id":"com.example.app","name":"Example","enabled":false,"mode":"observe","build_channel":"staging","development\#
        _integrity_allowed":true,"ios":{"app_ids":["TEAMID1234.com.example.app","TEAMID1234.com.example.app.beta"],"environm\#
        ents":["development","production"],"trust_anchors":[],"categories":[4,2,99],"unknown_categories":"allow","require_ca\#
        tegory":true,"minimum_bundle_version":"1.2.3","require_bundle_version":true,"assertions_required_on":["/v1/pay"],"as\#
        sertions_required_except":null,"flag_risk_metric_above":8},"android":{"packages":["com.example.b","com.example.a"],"\#
        certificate_digests":["ERERERERERERERERERERERERERERERERERERERERERE"],"minimum_version_code":7,"proof":"either","trus\#
        t_anchors":[],"play_integrity":{"keys":[{"decryption_key":"(secret)","verification_key":"MFkwEwYHKoZIzj0CAQYIKoZIzj0\#
        DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q=="}],"service_accoun\#
        t":null,"device_labels":["MEETS_STRONG_INTEGRITY","MEETS_DEVICE_INTEGRITY","MEETS_DEVICE_INTEGRITY"],"require_licens\#
        ed":true,"maximum_age_seconds":60,"allow_test_responses":true,"refuse_play_protect":["HIGH_RISK"],"refuse_app_access\#
        _risk":["UNKNOWN_CAPTURING"],"maximum_activity_level":"LEVEL_3","refuse_device_recall":["bitFirst"]},"key_attestatio\#
        n":{"minimum_security_level":"StrongBox","boot_states":["Verified","SelfSigned"],"boot_keys":["ababababababababababa\#
        bababababababababababababababababababababab","0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c"],"ma\#
        ximum_patch_age_days":90,"status_list":"https://example.com/status"}},"signature":{"minimum_scheme":2,"past_window_s\#
        econds":600,"future_window_seconds":300,"unsigned_query":"allow","replay_on_reads":false,"path_prefix_strip":"/inges\#
        t","authorities":["api.example.com"],"token_audiences":["x"]},"keys":{"maximum_age_days":90,"grace_days":1,"overlap_\#
        seconds":10,"reattest_on_rotation":true,"rebind_on_rotation":true,"key_proof":"required","compromise":{"keys_before"\#
        :"2026-11-01T00:00:00Z","rotate_by":"2026-11-08T00:00:00Z"}},"registration":{"approval":"manual","provider_outage":"\#
        pending","maximum_pending":5,"maximum_unproven":10000},"evidence":{"record":true,"keep_days":7}}
        """#
}
