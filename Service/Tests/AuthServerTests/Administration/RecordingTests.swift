import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Recorded refusals through the admin API, and flags of devices with a high risk metric.
@Suite struct RecordingTests {
    /// Changes these members of the app's record.
    private func change(_ server: TestServer, _ members: [String: JSONValue]) async throws {
        var record = TestServer.record
        for (name, value) in members { record[name] = value }
        let changed = try await server.service.apps.change(AppRecord(JSONFields(.object(record))), actor: "test")
        try #require(changed)
    }

    private func refuse(_ server: TestServer) async throws {
        let (response, _) = try await TestDevice.register(P256.Signing.PrivateKey(), at: server) {
            $0["proof"] = "AAAA"
        }
        try #require(response.code == "INVALID_ATTESTATION", "\(response.text)")
    }

    @Test func `recordings are listed in pages, exported and erased`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let empty = try await server.administer("GET", "/recordings", admin)
            #expect(empty.json["recordings"]?.array == [] && empty.json["next_cursor"] == .null)
            try await change(server, ["evidence": ["record": true]])
            for _ in 0..<3 { try await refuse(server) }
            var ids: [String] = []
            var cursor = ""
            repeat {
                let page = try await server.administer(
                    "GET", "/recordings?app_id=com.example.app&limit=2\(cursor)", admin)
                try #require(page.status == 200, "\(page.text)")
                let recordings = page.json["recordings"]?.array ?? []
                #expect(recordings.allSatisfy { $0.object?["code"] == "MALFORMED_OBJECT" })
                ids += recordings.compactMap { $0.object?["id"]?.string }
                cursor = page.json["next_cursor"]?.string.map { "&cursor=\($0)" } ?? ""
            } while !cursor.isEmpty
            #expect(Set(ids).count == 3)

            let path = "/apps/com.example.app/recordings/\(ids[0])"
            let file = try await server.administer("GET", path, admin)
            #expect(file.json["synheart_evidence"] == 1, "\(file.text)")
            #expect(file.json["input"]?.object?["object"] == "AAAA")
            #expect(try await server.administer("DELETE", path, admin).json["erased"] == 1)
            #expect(try await server.administer("GET", path, admin).code == "NOT_FOUND")
            #expect(try await server.administer("DELETE", path, admin).code == "NOT_FOUND")
            let rest = try await server.administer("DELETE", "/apps/com.example.app/recordings", admin)
            #expect(rest.json["erased"] == 2)
            let audit = try await server.administer("GET", "/audit", admin).text
            #expect(audit.contains("evidence.exported") && audit.contains("evidence.erased"))
            #expect(!audit.contains("AAAA\""))
        }
    }

    @Test func `the paths and the member that recordings had first work`() async throws {
        try await TestServer.with { server in
            try await change(server, ["evidence": ["record": true]])
            for _ in 0..<3 { try await refuse(server) }
            let admin = try await server.credential(.admin)
            let page = try await server.administer("GET", "/evidence?app_id=com.example.app&limit=2", admin)
            let listed = page.json["evidence"]?.array ?? []
            #expect(listed.count == 2 && page.json["recordings"] == nil, "\(page.text)")
            let id = try #require(listed.first?.object?["id"]?.string)
            let path = "/apps/com.example.app/evidence/\(id)"
            #expect(try await server.administer("GET", path, admin).json["synheart_evidence"] == 1)
            #expect(try await server.administer("DELETE", path, admin).json["erased"] == 1)
            #expect(try await server.administer("DELETE", "/apps/com.example.app/evidence", admin).json["erased"] == 2)
            // Each route requires its own role: a viewer may not list, and an operator may not delete.
            let viewer = try await server.credential(.viewer)
            #expect(try await server.administer("GET", "/evidence", viewer).status == 403)
            let own = try await server.credential(.operator, apps: [TestServer.appID])
            #expect(try await server.administer("DELETE", "/apps/com.example.app/evidence", own).status == 403)
            #expect(try await server.administer("POST", "/evidence", admin).status == 405)
        }
    }

    @Test func `recordings are only for credentials of their app`() async throws {
        try await TestServer.with { server in
            try await change(server, ["evidence": ["record": true]])
            try await refuse(server)
            let id = try #require(try await server.service.recordings.list(of: nil).first).id
            try await server.addApp("com.example.other")
            let other = try await server.credential(.operator, apps: ["com.example.other"])
            #expect(try await server.administer("GET", "/recordings", other).status == 403)
            #expect(try await server.administer("GET", "/recordings?app_id=com.example.app", other).status == 403)
            #expect(try await server.administer("GET", "/apps/com.example.app/recordings/\(id)", other).status == 403)
            // The recording is not found under the path of another app.
            #expect(try await server.administer("GET", "/apps/com.example.other/recordings/\(id)", other).status == 404)
            let own = try await server.credential(.operator, apps: [TestServer.appID])
            #expect(try await server.administer("GET", "/apps/com.example.app/recordings/\(id)", own).status == 200)
            #expect(try await server.administer("DELETE", "/apps/com.example.app/recordings/\(id)", own).status == 403)
        }
    }

    @Test func `risk metrics are counted, flagged above the app's threshold, and refuse nothing`() async throws {
        try await TestServer.with { server in
            try await change(
                server,
                ["ios": ["app_ids": ["TEAMID1234.com.example.app"], "flag_risk_metric_above": 3]])
            var ids: [String] = []
            for metric in [1, 3, 4, 40] {
                let device = DeviceRecord(
                    appID: try AppID(TestServer.appID), deviceID: DeviceID(from: SystemRandom()), platform: .ios,
                    status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
                    assurance: Assurance(app: .appAttest, key: .appVouched),
                    appAttest: AppAttestKeyState(
                        keyID: SystemRandom().bytes(32), publicKey: [], appID: "TEAMID1234.com.example.app",
                        environment: "production", riskMetric: metric), registeredAt: server.clock.now)
                let event = AuditEvent(.deviceRegistered, at: server.clock.now, actor: "test")
                let outcome = try await server.stores.insert(device, recording: event)
                #expect(outcome == .inserted)
                ids.append(device.deviceID.text)
            }
            let metrics = try await server.operations("/metrics").text
            for line in [
                #"synheart_device_risk_metric{app="com.example.app",range="0"} 0"#,
                #"synheart_device_risk_metric{app="com.example.app",range="1"} 1"#,
                #"synheart_device_risk_metric{app="com.example.app",range="2-3"} 1"#,
                #"synheart_device_risk_metric{app="com.example.app",range="4-7"} 1"#,
                #"synheart_device_risk_metric{app="com.example.app",range="32+"} 1"#,
                #"synheart_devices_over_risk_threshold{app="com.example.app"} 2"#,
            ] { #expect(metrics.contains(line), "\(line)") }
            #expect(!ids.contains { metrics.contains($0) })
            let viewer = try await server.credential(.viewer)
            let flags = try await ids.asyncMap { id in
                try await server.administer("GET", "/apps/com.example.app/devices/\(id)", viewer)
                    .json["app_attest"]?.object?["risk_flagged"]?.bool
            }
            #expect(flags == [false, false, true, true])
            let listed = try await server.administer("GET", "/devices", viewer).json["devices"]?.array ?? []
            #expect(listed.count { $0.object?["app_attest"]?.object?["risk_flagged"] == true } == 2)
        }
    }
}

extension Array {
    fileprivate func asyncMap<Mapped>(_ transform: (Element) async throws -> Mapped) async rethrows -> [Mapped] {
        var mapped: [Mapped] = []
        for element in self { mapped.append(try await transform(element)) }
        return mapped
    }
}
