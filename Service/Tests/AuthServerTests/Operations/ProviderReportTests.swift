import AndroidKeyAttestation
import AuthContract
import AuthService
import PlayIntegrity
import StrictJSON
import Testing

@testable import AuthServer

/// The outputs for operators show quota and revocation lists.
@Suite struct ProviderReportTests {
    private static let source = "https://example.com/status"

    private struct Reporting: EvidenceProviders {
        let today = IntegrityUsage.day(of: SystemClock().now)
        let app: AppID
        let other: AppID

        init() throws { (app, other) = (try AppID("com.example.android"), try AppID("com.example.other")) }

        func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
            .couldNotCheck(PlayIntegrityUnavailable(.network, "never asked"))
        }

        func revocations(from source: String) async -> RevocationStatusList? { nil }

        func report() async -> ProviderReport {
            ProviderReport(
                integrityUsage: [
                    IntegrityUsage(app: app, package: "com.example.app", day: today - 86_400, requests: 9),
                    IntegrityUsage(app: app, package: "com.example.app", day: today, requests: 7, refused: 2),
                    // Another app with the same package has its own numbers.
                    IntegrityUsage(app: other, package: "com.example.app", day: today, requests: 5),
                    IntegrityUsage(app: other, package: "com.example.other", day: today, requests: 1),
                ],
                revocationLists: [
                    RevocationListState(
                        source: source, entries: 12, ageSeconds: 300_000, isUsable: false, failure: "no answer in time")
                ])
        }
    }

    private static let record: JSONValue = [
        "app_id": "com.example.android", "build_channel": "dev",
        "android": [
            "packages": ["com.example.app"], "certificate_digests": ["ERERERERERERERERERERERERERERERERERERERERERE"],
            "key_attestation": ["status_list": .string(source)],
        ],
    ]

    @Test func `metrics have today's requests and the age of each list`() async throws {
        try await TestServer.with(providers: Reporting()) { server in
            let text = try await server.operations("/metrics").text
            for line in [
                #"synheart_play_integrity_requests_today{app="com.example.android",package="com.example.app"} 7"#,
                #"synheart_play_integrity_requests_today{app="com.example.other",package="com.example.other"} 1"#,
                #"synheart_play_integrity_quota_refusals_today{app="com.example.android",package="com.example.app"} 2"#,
                #"synheart_revocation_list_age_seconds{source="https://example.com/status"} 300000"#,
                #"synheart_revocation_list_entries{source="https://example.com/status"} 12"#,
                #"synheart_revocation_list_usable{source="https://example.com/status"} 0"#,
            ] {
                #expect(text.contains(line + "\n"), "\(line)")
            }
        }
    }

    @Test func `a source that leaves the report leaves the gauge`() {
        let registry = MetricsRegistry()
        registry.describe("g", .gauge, "A gauge.")
        registry.replace("g", with: [([("a", "1")], 1), ([("a", "2")], 2)])
        registry.replace("g", with: [([("a", "2")], 3)])
        #expect(registry.text().hasSuffix("# TYPE g gauge\ng{a=\"2\"} 3\n"))
    }

    @Test func `statistics of an app have only its own figures`() async throws {
        try await TestServer.with(providers: Reporting()) { server in
            _ = try await server.service.apps.add(AppRecord(JSONFields(Self.record)), actor: "test")
            let viewer = try await server.credential(.viewer)
            let statistics = try await server.administer("GET", "/statistics", viewer)
            let apps = try #require(statistics.json["apps"]?.array)
            let android = try #require(apps.first { $0.object?["app_id"] == "com.example.android" }?.object)
            let usage = try #require(android["play_integrity"]?.array)
            #expect(usage.map { $0.object?["requests"] } == [9, 7])
            #expect(usage.last?.object?["quota_refusals"] == 2)
            #expect(android["revocation_list"]?.object?["usable"] == false)
            #expect(android["revocation_list"]?.object?["age_seconds"] == 300_000)
            let other = try #require(apps.first { $0.object?["app_id"]?.string == TestServer.appID }?.object)
            #expect(other["play_integrity"] == nil)
        }
    }
}
