import AuthContract
import PlayIntegrity
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// The last accepted and the first refused value of every bound of a record or an audit head.
@Suite("Bounds of records")
struct RecordBoundaryTests {
    @Test(
        "a number of an app record is in its range, the ends included",
        arguments: [
            ("android.minimum_version_code", 0, nil), ("android.play_integrity.maximum_age_seconds", 1, 86_400),
            ("android.key_attestation.maximum_patch_age_days", 1, 36_500), ("signature.minimum_scheme", 1, 2),
            ("signature.past_window_seconds", 1, 600), ("signature.future_window_seconds", 0, 300),
            ("keys.maximum_age_days", 1, 36_500), ("keys.grace_days", 0, 3650), ("keys.overlap_seconds", 0, 3600),
            ("registration.maximum_pending", 0, 1_000_000), ("registration.maximum_unproven", 0, 1_000_000),
            ("evidence.keep_days", 1, 365), ("ios.flag_risk_metric_above", 0, 1_000_000),
        ] as [(String, Int64, Int64?)])
    func ranges(name: String, lowest: Int64, highest: Int64?) throws {
        func record(_ value: Int64) throws -> AppRecord {
            let path = name.split(separator: ".").map(String.init)
            return try AppRecord(JSONFields(AppRecordTests.setting(AppRecordTests.everything(), path, .integer(value))))
        }
        let highest = highest ?? .max
        #expect(throws: Never.self) { try record(lowest) }
        #expect(throws: Never.self) { try record(highest) }
        #expect(throws: JSONError(.wrongType, path: name)) { try record(lowest - 1) }
        if highest < .max { #expect(throws: JSONError(.wrongType, path: name)) { try record(highest + 1) } }
    }

    @Test("a record that names neither trust anchors nor both platforms is one of production")
    func onePlatform() throws {
        var object = try #require(AppRecordTests.everything().object)
        object["build_channel"] = "production"
        object["development_integrity_allowed"] = false
        object["android"] = nil
        #expect(throws: Never.self) { try AppRecord(JSONFields(.object(object))) }
        let anchors = AppRecordTests.setting(.object(object), ["ios", "trust_anchors"], ["x"])
        #expect(throws: (any Error).self) { try AppRecord(JSONFields(anchors)) }
        object["ios"] = nil
        #expect(throws: (any Error).self) { try AppRecord(JSONFields(.object(object))) }
    }

    @Test("a record that does not say takes tokens of ten minutes, and 10,000 devices that are pending or unproven")
    func registrationDefaults() throws {
        let record = AppRecordTests.setting(AppRecordTests.everything(), ["registration"], [:])
        let policy = try AppRecord(JSONFields(record)).registration
        #expect(policy.maximumPending == 10_000 && policy.maximumUnproven == 10_000)
        let path = ["android", "play_integrity", "maximum_age_seconds"]
        let android = try AppRecord(JSONFields(AppRecordTests.setting(record, path, .null))).android
        #expect(android?.playIntegrity.policy.maximumAgeSeconds == 600)
    }

    @Test("an audit head is read as it is printed, and in no other form")
    func auditHeads() throws {
        let hash = Base64.url.encode([UInt8](repeating: 1, count: 32))
        let signature = Base64.url.encode([UInt8](repeating: 2, count: 64))
        for text in ["audit-head-v1.0.0.\(hash).\(signature)", "audit-head-v1.17.-5.\(hash).\(signature)"] {
            #expect(try AuditHead(text).description == text)
        }
        let head = try AuditHead("audit-head-v1.17.99.\(hash).\(signature)")
        #expect(head.sequence == 17 && head.at == UnixTime(99))
        #expect(head.hash == [UInt8](repeating: 1, count: 32) && head.signature == [UInt8](repeating: 2, count: 64))
        let short = Base64.url.encode([UInt8](repeating: 1, count: 31))
        let long = Base64.url.encode([UInt8](repeating: 1, count: 33))
        for text in [
            "", "audit-head-v1.1.1.\(hash)", "audit-head-v1.1.1.\(hash).\(signature).",
            "audit-head-v1..1.1.\(hash).\(signature)",
            "audit-head-v2.1.1.\(hash).\(signature)", "audit-head-v1.-1.1.\(hash).\(signature)",
            "audit-head-v1.01.1.\(hash).\(signature)", "audit-head-v1.+1.1.\(hash).\(signature)",
            "audit-head-v1.1.01.\(hash).\(signature)", "audit-head-v1.1.x.\(hash).\(signature)",
            "audit-head-v1.1.1.\(short).\(signature)", "audit-head-v1.1.1.\(long).\(signature)",
            "audit-head-v1.1.1.\(hash).\(hash)", "audit-head-v1.1.1.\(hash).\(signature)=",
        ] {
            #expect(throws: ContractError.self, "\(text)") { try AuditHead(text) }
        }
    }

    @Test("a rate by the hour is sixty by the minute, and days begin at midnight UTC")
    func units() throws {
        #expect(Rate(burst: 1, perHour: 120).perMinute == 2 && Rate(burst: 1, perMinute: 2).perHour == 120)
        for (time, day) in [(0, 0), (86_399, 0), (86_400, 86_400), (172_800, 172_800)] as [(Int64, Int64)] {
            #expect(IntegrityUsage.day(of: UnixTime(time)) == UnixTime(day))
        }
        let usage = try IntegrityUsage(app: AppID("a.b"), package: "a.b", day: UnixTime(0))
        #expect(usage.requests == 0 && usage.refused == 0)
    }

    @Test("one change has the last-seen times of at most 1000 devices")
    func lastSeen() throws {
        #expect(throws: Never.self) { try LastSeen.check(1000) }
        #expect(throws: StoreError.self) { try LastSeen.check(1001) }
        #expect(LastSeen.grain == 3600)
    }

    @Test("a record replaces the one that it was made of, and no other")
    func replacing() async throws {
        let world = try await World()
        let (first, second) = (try World.record(["name": "First"]), try World.record(["name": "Second"]))
        func change(_ record: AppRecord, ifStill expected: AppRecord?) async throws -> Bool {
            try await world.service.apps.change(record, ifStill: expected, actor: "test")
        }
        #expect(try await change(first, ifStill: nil))
        #expect(try await !change(second, ifStill: second))
        #expect(try await change(second, ifStill: first))
        #expect(try await !change(first, ifStill: first))
    }

    @Test("a head is compared with the log: with nothing, with an event that is there, and with one beyond its end")
    func auditTrail() async throws {
        let world = try await World()
        let trail = AuditTrail(
            log: world.stores, key: try #require(ServiceKey([[UInt8](repeating: 7, count: 32)])), clock: world.clock)
        func finding(_ sequence: Int64, _ hash: [UInt8]) async throws -> AuditCheckResult {
            try await trail.compare(
                AuditHead(sequence: sequence, at: UnixTime(0), hash: hash, signature: [UInt8](repeating: 0, count: 64)))
        }
        let head = try await trail.head()
        #expect(head.sequence > 0)
        #expect(try await finding(head.sequence, head.hash) == .intact)
        #expect(try await finding(head.sequence, AuditChain.origin) == .rewritten)
        #expect(try await finding(head.sequence + 1, head.hash) == .cut(last: head.sequence))
        #expect(try await finding(0, AuditChain.origin) == .intact)
        #expect(try await finding(0, head.hash) == .rewritten)
    }

    @Test("a credential has a name of 1 to 128 bytes and a life of at most ten years")
    func credentials() async throws {
        let world = try await World()
        func isMade(name: Int = 1, life: Int64 = 1) async -> Bool {
            let name = String(repeating: "a", count: name)
            return
                (try? await world.service.credentials.create(
                    name: name, role: .admin, scope: .allApps, life: life, actor: "test")) != nil
        }
        let tenYears: Int64 = 10 * 366 * 86_400
        for (name, life, expected) in [
            (0, 1, false), (1, 1, true), (128, 1, true), (129, 1, false), (1, 0, false), (1, tenYears, true),
            (1, tenYears + 1, false),
        ] as [(Int, Int64, Bool)] {
            #expect(await isMade(name: name, life: life) == expected, "\(name) \(life)")
        }
    }

    @Test("an address is an IPv4 address, the first half of an IPv6 address, or the text that it is")
    func clientAddresses() {
        for (text, network) in [
            ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("::FFFF:c000:207", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8::1%eth0", "2001:db8:0:0::/64"),
            ("::fffe:192.0.2.7", "0:0:0:0::/64"), ("::1:ffff:c000:207", "0:0:0:0::/64"), ("::1", "0:0:0:0::/64"),
            ("not:an:address", "not:an:address"), ("", ""),
        ] {
            #expect(ClientAddress(text).network == network, "\(text)")
        }
    }
}
