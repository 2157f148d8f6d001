import AuthContract
import AuthService
import Crypto
import Foundation
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// The admin API: roles, and the effect of each call.
@Suite struct AdminTests {
    static let device = "/apps/com.example.app/devices/0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"

    /// A path of the route, below the base.
    static func path(_ route: AdminRoute) -> String {
        route.template.dropFirst(AdminRoute.base.count)
            .replacing("{app_id}", with: "com.example.app")
            .replacing("{device_id}", with: "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11")
            .replacing("{webhook_id}", with: "none").replacing("{credential_id}", with: "none").replacing(
                "{recording_id}", with: "none"
            ).description
    }

    @Test(arguments: [("\u{7F}", 20_000, 200), ("\u{7F}", 25_000, 400), ("\u{2028}", 25_000, 400), ("a", 140_000, 400)])
    func `a record that grows beyond its bound when it is written is refused, and every list can be read`(
        _ character: String, _ count: Int, _ status: Int
    ) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin, apps: [TestServer.appID])
            var record = TestServer.record
            record["name"] = .string(String(repeating: character, count: count))
            for _ in 0..<2 {
                let answer = try await server.administer(
                    "PUT", "/apps/\(TestServer.appID)", admin, body: .object(record))
                #expect(answer.status == status, "\(answer.text.prefix(200))")
            }
            for path in ["/apps", "/apps/\(TestServer.appID)", "/audit?app_id=\(TestServer.appID)"] {
                #expect(try await server.administer("GET", path, admin).status == 200)
            }
            #expect(try await server.service.apps.records().count == 1)
        }
    }

    @Test(arguments: AdminRoute.allCases) func `a call without a credential of the role is refused`(
        route: AdminRoute
    ) async throws {
        try await TestServer.with { server in
            for credential in [nil, "", "sya_x_y", "nonsense"] as [String?] {
                let response = try await server.administer(route.method, Self.path(route), credential)
                #expect(response.status == 401, "\(response.text)")
                #expect(response.code == "UNAUTHORIZED")
                #expect(response.value("WWW-Authenticate") == "Bearer")
            }
            for role in CredentialRole.allCases where !role.includes(route.role) {
                let credential = try await server.credential(role, apps: [TestServer.appID])
                let response = try await server.administer(route.method, Self.path(route), credential)
                #expect(response.status == 403, "\(role) \(response.text)")
            }
            let least = try await server.credential(route.role)
            let response = try await server.administer(route.method, Self.path(route), least)
            #expect(response.status != 401 && response.status != 403 && response.status < 500, "\(response.text)")
        }
    }

    @Test func `an unknown path is not found only for an authorized caller`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            #expect(try await server.administer("GET", "/nowhere", nil).status == 401)
            #expect(try await server.administer("GET", "/nowhere", viewer).status == 404)
            let wrong = try await server.administer("PATCH", "/apps", viewer)
            #expect(wrong.status == 405)
            #expect(wrong.value("Allow") == "GET, POST")
        }
    }

    @Test func `expired and revoked credentials are refused`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let made = try await server.administer(
                "POST", "/credentials", admin,
                body: ["name": "short", "role": "viewer", "all_apps": true, "expires_in_seconds": 60])
            #expect(made.status == 201, "\(made.text)")
            let text = try #require(made.json["credential"]?.string)
            #expect(try await server.administer("GET", "/apps", text).status == 200)
            let id = try #require(made.json["id"]?.string)
            #expect(try await server.administer("DELETE", "/credentials/\(id)", admin).status == 204)
            #expect(try await server.administer("GET", "/apps", text).status == 401)
            #expect(try await server.administer("DELETE", "/credentials/\(id)", admin).status == 204)
            #expect(try await server.administer("DELETE", "/credentials/nobody", admin).status == 404)
            server.clock.advance(3601)
            #expect(try await server.administer("GET", "/apps", admin).status == 401)
        }
    }

    @Test func `credentials are listed without their secrets`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let listed = try await server.administer("GET", "/credentials", admin)
            #expect(listed.json["credentials"]?.array?.count == 1)
            #expect(!listed.text.contains(admin.suffix(20)))
            for body in [
                ["name": "x", "role": "service", "all_apps": true], ["name": "x", "role": "root", "all_apps": true],
                ["role": "viewer", "all_apps": true],
                ["name": "x", "role": "viewer", "all_apps": true, "more": 1],
                ["name": "", "role": "viewer", "all_apps": true],
                ["name": "x", "role": "viewer", "apps": ["not an id"]],
                ["name": "x", "role": "viewer", "all_apps": true, "expires_in_seconds": 0],
            ] as [JSONValue] {
                #expect(try await server.administer("POST", "/credentials", admin, body: body).status == 400)
            }
        }
    }

    @Test func `apps are added, changed and removed`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            var record = TestServer.record
            record["app_id"] = "com.example.second"
            let added = try await server.administer("POST", "/apps", admin, body: .object(record))
            #expect(added.status == 201, "\(added.text)")
            #expect(added.json["mode"]?.string == "enforce")
            let again = try await server.administer("POST", "/apps", admin, body: .object(record))
            #expect(again.status == 409 && again.code == "CONFLICT", "\(again.text)")
            record["mode"] = "observe"
            let changed = try await server.administer("PUT", "/apps/com.example.second", admin, body: .object(record))
            #expect(changed.status == 200, "\(changed.text)")
            #expect(
                try await server.administer("GET", "/apps/com.example.second", admin).json["mode"]?.string == "observe")
            record["app_id"] = "com.example.third"
            #expect(
                try await server.administer("PUT", "/apps/com.example.second", admin, body: .object(record)).status
                    == 400)
            record["app_id"] = "com.example.second"
            record["typo"] = true
            let typo = try await server.administer("PUT", "/apps/com.example.second", admin, body: .object(record))
            #expect(typo.status == 400)
            #expect(typo.json["message"]?.string?.contains("typo") == true)
            #expect(try await server.administer("DELETE", "/apps/com.example.second", admin).status == 204)
            let gone = try await server.administer("GET", "/apps/com.example.second", admin)
            #expect(gone.status == 404)
            #expect(gone.code == "UNKNOWN_APP")
            let actors = try await server.all.audit.events(
                app: AppID("com.example.second"), device: nil, before: nil, limit: 10
            ).map(\.event.actor)
            #expect(actors.count == 3 && actors.allSatisfy { $0.hasPrefix("admin:") })
        }
    }

    @Test func `a record that was read can be written back with its secrets`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let secret = Base64.standard.encode([UInt8](repeating: 9, count: 32))
            let verification = Base64.standard.encode(Array(P256.Signing.PrivateKey().publicKey.derRepresentation))
            let record: JSONValue = [
                "app_id": "com.example.play",
                "android": [
                    "packages": ["com.example.play"],
                    "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                    "play_integrity": [
                        "keys": [["decryption_key": .string(secret), "verification_key": .string(verification)]]
                    ],
                ],
            ]
            let added = try await server.administer("POST", "/apps", admin, body: record)
            #expect(added.status == 201, "\(added.text)")
            #expect(!added.text.contains(secret))
            var read = try await server.administer("GET", "/apps/com.example.play", admin).json
            read["name"] = "renamed"
            let written = try await server.administer("PUT", "/apps/com.example.play", admin, body: .object(read))
            #expect(written.status == 200, "\(written.text)")
            let kept = try await server.service.apps.record(AppID("com.example.play"))
            #expect(kept?.android?.playIntegrity.keys.map(\.decryptionKey.exposed) == [secret])
            #expect(kept?.name == "renamed")
        }
    }

    @Test func `of two key pairs that share a verification key each keeps its own decryption key`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let secrets = [UInt8(1), 2].map { Base64.standard.encode([UInt8](repeating: $0, count: 32)) }
            let verification = Base64.standard.encode(Array(P256.Signing.PrivateKey().publicKey.derRepresentation))
            let pairs = secrets.map { secret -> JSONValue in
                ["decryption_key": .string(secret), "verification_key": .string(verification)]
            }
            var record: JSONValue = [
                "app_id": "com.example.play",
                "android": [
                    "packages": ["com.example.play"],
                    "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                    "play_integrity": ["keys": .array(pairs)],
                ],
            ]
            #expect(try await server.administer("POST", "/apps", admin, body: record).status == 201)
            func kept() async throws -> [String]? {
                try await server.service.apps.record(AppID("com.example.play"))?.android?.playIntegrity.keys
                    .map(\.decryptionKey.exposed)
            }
            record = .object(try await server.administer("GET", "/apps/com.example.play", admin).json)
            #expect(
                try await server.administer("PUT", "/apps/com.example.play", admin, body: record).status == 200)
            #expect(try await kept() == secrets)
            // A mask that stands for no secret of the record is refused.
            let text = record.text().replacing(/\(secret [0-9a-f]{16}\)/, with: "(secret 0000000000000000)")
            let foreign = try JSONValue(parsing: text, limits: .init(bytes: 1 << 20, depth: 16))
            let refused = try await server.administer("PUT", "/apps/com.example.play", admin, body: foreign)
            #expect(refused.status == 400, "\(refused.text)")
            #expect(try await kept() == secrets)
        }
    }

    @Test(
        arguments: [
            ["apps": []], ["apps": .null], [:], ["apps": [], "all_apps": false], ["all_apps": .null],
            ["apps": ["com.example.app"], "all_apps": true], ["apps": ["com.example.unknown"]],
            ["apps": ["com.example.app", "com.example.unknown"]],
        ] as [[String: JSONValue]])
    func `a credential says which apps it is for`(members: [String: JSONValue]) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            var body: [String: JSONValue] = ["name": "x", "role": "viewer"]
            body.merge(members) { $1 }
            let made = try await server.administer(
                "POST", "/credentials", admin, body: .object(JSONObject(body.map { ($0, $1) })))
            #expect(made.status == 400 && made.code == "INVALID_REQUEST", "\(made.text)")
        }
    }

    @Test func `a credential for some apps names them, and one for all of them says so`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let some = try await server.administer(
                "POST", "/credentials", admin, body: ["name": "x", "role": "viewer", "apps": ["com.example.app"]])
            #expect(some.status == 201 && some.json["all_apps"] == false, "\(some.text)")
            let all = try await server.administer(
                "POST", "/credentials", admin, body: ["name": "x", "role": "viewer", "all_apps": true])
            #expect(all.status == 201 && all.json["all_apps"] == true && all.json["apps"] == [], "\(all.text)")
            // The limit of a name is in bytes, not in visible characters.
            let long = JSONValue.string("a" + String(repeating: "\u{301}", count: 128))
            let refused = try await server.administer(
                "POST", "/credentials", admin, body: ["name": long, "role": "viewer", "all_apps": true])
            #expect(refused.status == 400, "\(refused.text)")
        }
    }

    @Test func `the credentials of a removed app end with it, and a new app of the id starts empty`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            var record = TestServer.record
            record["app_id"] = "com.example.second"
            #expect(try await server.administer("POST", "/apps", admin, body: .object(record)).status == 201)
            let alone = try await server.credential(.operator, apps: ["com.example.second"])
            let shared = try await server.credential(.operator, apps: ["com.example.second", TestServer.appID])
            func devices(_ credential: String, of app: String) async throws -> Int {
                try await server.administer("GET", "/devices?app_id=\(app)", credential).status
            }
            #expect(try await devices(alone, of: "com.example.second") == 200)
            #expect(try await server.administer("DELETE", "/apps/com.example.second", admin).status == 204)
            #expect(try await server.administer("POST", "/apps", admin, body: .object(record)).status == 201)
            #expect(try await devices(alone, of: "com.example.second") == 401)
            #expect(try await devices(shared, of: "com.example.second") == 403)
            #expect(try await devices(shared, of: TestServer.appID) == 200)
        }
    }

    @Test func `only a credential for all apps names a package of another app`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            func record(_ id: String, _ packages: JSONValue) -> JSONValue {
                [
                    "app_id": .string(id),
                    "android": [
                        "packages": packages,
                        "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                    ],
                ]
            }
            for (id, package) in [("com.example.one", "com.one"), ("com.example.two", "com.two")] {
                let added = try await server.administer("POST", "/apps", admin, body: record(id, [.string(package)]))
                #expect(added.status == 201, "\(added.text)")
            }
            let bound = try await server.credential(.admin, apps: ["com.example.two"])
            let both = record("com.example.two", ["com.two", "com.one"])
            let refused = try await server.administer("PUT", "/apps/com.example.two", bound, body: both)
            #expect(refused.status == 403 && refused.code == "FORBIDDEN", "\(refused.text)")
            let path = "/apps/com.example.two"
            #expect(try await server.administer("PUT", path, admin, body: both).status == 200)
            // The record may keep a package that a credential for all apps added.
            #expect(try await server.administer("PUT", path, bound, body: both).status == 200)
        }
    }

    @Test func `only a credential for all apps names an App ID of another app`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            func record(_ id: String, _ appIDs: [JSONValue]) -> JSONValue {
                ["app_id": .string(id), "ios": ["app_ids": .array(appIDs), "environments": ["production"]]]
            }
            let ids: [JSONValue] = ["ABCDE12345.com.one", "ABCDE12345.com.two"]
            for (app, id) in zip(["com.example.one", "com.example.two"], ids) {
                let added = try await server.administer("POST", "/apps", admin, body: record(app, [id]))
                #expect(added.status == 201, "\(added.text)")
            }
            let bound = try await server.credential(.admin, apps: ["com.example.two"])
            let (path, both) = ("/apps/com.example.two", record("com.example.two", ids))
            let refused = try await server.administer("PUT", path, bound, body: both)
            #expect(refused.status == 403 && refused.code == "FORBIDDEN", "\(refused.text)")
            #expect(refused.text.contains("ios.app_ids"))
            #expect(try await server.administer("PUT", path, admin, body: both).status == 200)
            #expect(try await server.administer("PUT", path, bound, body: both).status == 200)
        }
    }

    @Test(arguments: ["rejected", "revoked", "deregistered"])
    func `a device that ended is neither told to rotate nor lowered`(status: String) async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.operator)
            let device = try await TestDevice.register(at: server)
            let (id, app) = (try DeviceID(device.id), try AppID(TestServer.appID))
            try await server.stores.change(id, of: app) { $0.status = DeviceStatus(rawValue: status) ?? .pending }
            let path = "/apps/\(TestServer.appID)/devices/\(device.id)"
            for (action, body) in [
                ("force-rotation", nil), ("lift-rotation", nil), ("lower-scheme", ["scheme": 1]),
            ] as [(String, JSONValue?)] {
                let refused = try await server.administer("POST", "\(path)/\(action)", credential, body: body)
                #expect(refused.status == 409 && refused.code == "CONFLICT", "\(action): \(refused.text)")
            }
        }
    }

    @Test func `a demand to rotate for a compromise is lifted only explicitly, and no scheme is raised`() async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.operator)
            let device = try await TestDevice.register(at: server)
            let path = "/apps/\(TestServer.appID)/devices/\(device.id)"
            func decide(_ action: String, _ body: JSONValue? = nil) async throws -> RawResponse {
                try await server.administer("POST", "\(path)/\(action)", credential, body: body)
            }
            let demanded = try await decide("force-rotation", ["within_seconds": 60, "reason": "compromise"])
            let weaker = try await decide("force-rotation", ["within_seconds": 0])
            #expect(weaker.status == 200, "\(weaker.text)")
            for name in ["must_rotate_by", "must_rotate_reason"] { #expect(weaker.json[name] == demanded.json[name]) }
            #expect(try await decide("lift-rotation").json["must_rotate_by"] == .null)
            let raised = try await decide("lower-scheme", ["scheme": 2])
            #expect(raised.status == 409 && raised.code == "CONFLICT", "\(raised.text)")
            #expect(try await decide("lower-scheme", ["scheme": 1]).json["highest_scheme"] == 1)
        }
    }

    @Test func `an older record does not lift a compromise, and null does`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let older = TestServer.record
            func put(_ keys: JSONValue?) async throws -> RawResponse {
                var record = older
                record["keys"] = keys
                return try await server.administer("PUT", "/apps/\(TestServer.appID)", admin, body: .object(record))
            }
            let now = server.clock.now
            let compromise: JSONValue = ["keys_before": .string(now.iso8601), "rotate_by": .string((now + 60).iso8601)]
            #expect(try await put(["compromise": compromise]).status == 200)
            for keys: JSONValue? in [nil, [:], .null, ["key_proof": "required"], ["compromise": []]] {
                let refused = try await put(keys)
                #expect(refused.status == 409 && refused.code == "CONFLICT", "\(refused.text)")
            }
            #expect(try await put(["compromise": compromise]).status == 200)
            #expect(try await put(["compromise": .null]).status == 200)
            #expect(try await put(nil).status == 200)
        }
    }

    @Test func `devices are listed in pages without gaps or repeats`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            var ids: Set<String> = []
            for number in 0..<7 {
                ids.insert(try await TestDevice.register(at: server).id)
                // Some devices register in the same second.
                if number % 3 == 0 { server.clock.advance(1) }
            }
            var seen: [String] = []
            var cursor = ""
            repeat {
                let page = try await server.administer("GET", "/devices?limit=3\(cursor)", viewer)
                try #require(page.status == 200, "\(page.text)")
                seen += (page.json["devices"]?.array ?? []).compactMap { $0.object?["device_id"]?.string }
                cursor = page.json["next_cursor"]?.string.map { "&cursor=\($0)" } ?? ""
            } while !cursor.isEmpty
            #expect(seen.count == 7)
            #expect(Set(seen) == ids)
        }
    }

    @Test(arguments: [
        "limit=0", "limit=1001", "limit=x", "status=odd", "platform=windows", "cursor=x", "cursor=AAAA", "what=1",
        "app_id=a&app_id=a", "app_id=%zz", "app_id=%", "app_id=%4", "app_id=%+1", "app_id=%FF", "app_id=%C3",
        "app_id", "device_id=0b7c1b1e", "device_hash=", "device_hash=2e63ae89698b95d", "device_hash=2E63AE89698B95DD",
        "device_hash=2e63ae89698b95dg", "device_hash=2e63ae89698b95dd2e63ae89698b95dd",
        "registered_from=yesterday", "app_id=not%20an%20id",
    ]) func `a query that is not understood is refused`(query: String) async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let response = try await server.administer("GET", "/devices?\(query)", viewer)
            #expect(response.status == 400, "\(response.text)")
        }
    }

    @Test func `devices are searched`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let device = try await TestDevice.register(at: server)
            let now = server.clock.now
            for (query, count) in [
                ("status=registered", 1), ("status=pending", 0), ("platform=ios", 1), ("platform=android", 0),
                ("app_id=com%2Eexample.app", 1), ("app_id=com.example.other", 0), ("registered_from=\(now)", 1),
                ("registered_before=\(now)", 0), ("registered_from=\((now + 1).iso8601)", 0),
                ("app_id=com.example.app&device_id=\(device.id)", 1),
            ] {
                let response = try await server.administer("GET", "/devices?\(query)", viewer)
                #expect(response.json["devices"]?.array?.count == count, "\(query) \(response.text)")
            }
        }
    }

    @Test func `an operator decides about a device`() async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.operator)
            let device = try await TestDevice.register(at: server)
            let path = "/apps/com.example.app/devices/\(device.id)"
            #expect(try await server.administer("GET", path, credential).json["status"]?.string == "registered")
            let approved = try await server.administer("POST", path + "/approve", credential)
            #expect(approved.status == 409 && approved.code == "CONFLICT", "\(approved.text)")
            let forced = try await server.administer(
                "POST", path + "/force-rotation", credential, body: ["within_seconds": 60])
            #expect(forced.json["must_rotate_by"]?.string == (server.clock.now + 60).iso8601, "\(forced.text)")
            #expect(
                try await server.administer("POST", path + "/lower-scheme", credential, body: ["scheme": 1]).status
                    == 200)
            #expect(try await server.administer("POST", path + "/lower-scheme", credential).status == 400)
            let revoked = try await server.administer("POST", path + "/revoke", credential, body: ["reason": "stolen"])
            #expect(revoked.json["status"]?.string == "revoked", "\(revoked.text)")
            #expect(try await device.send(.status, to: server).code == "DEVICE_REVOKED")
            // A revoked device can be revoked again, as in a retry. It cannot be approved or rejected.
            let again = try await server.administer("POST", path + "/revoke", credential)
            #expect(again.status == 200 && again.json["status"]?.string == "revoked", "\(again.text)")
            for decision in ["approve", "reject"] {
                let refused = try await server.administer("POST", path + "/\(decision)", credential)
                #expect(refused.status == 409 && refused.code == "CONFLICT", "\(refused.text)")
            }
            let missing = try await server.administer("POST", Self.device + "/revoke", credential)
            #expect(missing.status == 404)
            #expect(missing.code == "NOT_FOUND")
        }
    }

    @Test func `a pending device is approved or rejected`() async throws {
        try await TestServer.with { server in
            var record = TestServer.record
            record["registration"] = ["approval": "manual"]
            _ = try await server.service.apps.change(.init(.init(.object(record))), actor: "test")
            let credential = try await server.credential(.operator)
            for (decision, status) in [("approve", "registered"), ("reject", "rejected")] {
                let device = try await TestDevice.register(at: server)
                let path = "/apps/com.example.app/devices/\(device.id)/\(decision)"
                #expect(try await server.administer("POST", path, credential).json["status"]?.string == status)
            }
        }
    }

    @Test func `a device whose proof never verified is approved only explicitly`() async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.operator)
            let device = DeviceRecord(
                appID: try AppID(TestServer.appID), deviceID: DeviceID(from: SystemRandom()), platform: .android,
                status: .pending, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey), assurance: .unproven,
                registeredAt: server.clock.now)
            _ = try await server.stores.insert(
                device, recording: AuditEvent(.devicePending, at: server.clock.now, actor: "test"))
            let path = "/apps/com.example.app/devices/\(device.deviceID)/approve"
            for body: JSONValue? in [nil, ["unproven": false]] {
                let refused = try await server.administer("POST", path, credential, body: body)
                #expect(refused.status == 409 && refused.code == "CONFLICT", "\(refused.text)")
                #expect(refused.json["message"]?.string?.contains("unproven") == true)
            }
            #expect(try await server.administer("POST", path, credential, body: ["unproven": 1]).status == 400)
            let approved = try await server.administer("POST", path, credential, body: ["unproven": true])
            #expect(approved.json["status"]?.string == "registered", "\(approved.text)")
            #expect(approved.json["assurance"]?.object?["labels"] == ["unproven"])
        }
    }

    @Test func `state conflicts of apps are 409`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            _ = try await TestDevice.register(at: server)
            let added = try await server.administer("POST", "/apps", admin, body: .object(TestServer.record))
            #expect(added.status == 409 && added.code == "CONFLICT", "\(added.text)")
            let removed = try await server.administer("DELETE", "/apps/com.example.app", admin)
            #expect(removed.status == 409 && removed.code == "CONFLICT", "\(removed.text)")
            var record = TestServer.record
            record["build_channel"] = "staging"
            let changed = try await server.administer("PUT", "/apps/com.example.app", admin, body: .object(record))
            #expect(changed.status == 409 && changed.code == "CONFLICT", "\(changed.text)")
        }
    }

    @Test func `only a credential for all apps adds audiences, and none is another app`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let bound = try await server.credential(.admin, apps: [TestServer.appID])
            func put(_ credential: String, _ audiences: JSONValue) async throws -> RawResponse {
                var record = TestServer.record
                record["signature"] = ["token_audiences": audiences]
                return try await server.administer("PUT", "/apps/com.example.app", credential, body: .object(record))
            }
            let refused = try await put(bound, ["https://api.example.com"])
            #expect(refused.status == 403 && refused.code == "FORBIDDEN", "\(refused.text)")
            #expect(refused.json["message"]?.string?.contains("token_audiences") == true)
            #expect(try await put(admin, ["https://api.example.com", "com.example.second"]).status == 200)
            // A backend whose configured audience is empty by mistake would accept a token with an empty audience.
            for audience in ["", " ", "a\nb", "api "] as [JSONValue] {
                let refused = try await put(admin, ["https://api.example.com", audience])
                #expect(refused.status == 400 && refused.text.contains("an audience"), "\(refused.text)")
            }
            // A credential for some apps may keep or remove the audiences that a credential for all apps added.
            #expect(try await put(bound, ["com.example.second", "https://api.example.com"]).status == 200)
            var second = TestServer.record
            second["app_id"] = "com.example.second"
            let added = try await server.administer("POST", "/apps", admin, body: .object(second))
            #expect(added.status == 409 && added.code == "CONFLICT", "\(added.text)")
            #expect(added.json["message"]?.string?.contains(TestServer.appID) == true)
            #expect(try await put(bound, ["https://api.example.com"]).status == 200)
            #expect(try await server.administer("POST", "/apps", admin, body: .object(second)).status == 201)
            let clash = try await put(admin, ["com.example.second"])
            #expect(clash.status == 409 && clash.code == "CONFLICT", "\(clash.text)")
            #expect(clash.json["message"]?.string?.contains("com.example.second") == true)
        }
    }

    @Test func `revoking a credential twice succeeds`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let made = try await server.administer(
                "POST", "/credentials", admin, body: ["name": "backend", "role": "viewer", "all_apps": true])
            let id = try #require(made.json["id"]?.string, "\(made.text)")
            for _ in 0..<2 {
                #expect(try await server.administer("DELETE", "/credentials/\(id)", admin).status == 204)
            }
            #expect(try await server.administer("DELETE", "/credentials/nobody", admin).status == 404)
        }
    }

    @Test func `a signing key is revoked at once`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            func published() async throws -> [String] {
                try await server.send("GET", Route.keySet.rawValue).json["keys"]?.array?
                    .compactMap { $0.object?["kid"]?.string } ?? []
            }
            let before = try await published()
            try #require(before.count == 2)
            let listed = try await server.administer("GET", "/signing-keys", admin)
            #expect(
                listed.json["signing_keys"]?.array?.map { $0.object?["use"]?.string } == ["signing", "standby"],
                "\(listed.text)")
            #expect(try await server.administer("DELETE", "/signing-keys/\(before[0])", admin).status == 204)
            let after = try await published()
            #expect(after.count == 2 && after.first == before.last)
            // Revoking a revoked key succeeds. An unknown key is not found.
            #expect(try await server.administer("DELETE", "/signing-keys/\(before[0])", admin).status == 204)
            #expect(try await server.administer("DELETE", "/signing-keys/unknown", admin).status == 404)
            let bound = try await server.credential(.admin, apps: [TestServer.appID])
            #expect(try await server.administer("DELETE", "/signing-keys/\(after[0])", bound).status == 403)
            let operators = try await server.credential(.operator)
            #expect(try await server.administer("DELETE", "/signing-keys/\(after[0])", operators).status == 403)
        }
    }

    @Test func `a credential for some apps sees no others`() async throws {
        try await TestServer.with { server in
            _ = try await TestDevice.register(at: server)
            try await server.addApp("com.example.other")
            let admin = try await server.credential(.admin, apps: ["com.example.other"])
            for path in ["/apps", "/statistics"] {
                let seen = try await server.administer("GET", path, admin).json["apps"]?.array ?? []
                #expect(seen.map { $0.object?["app_id"] } == ["com.example.other"])
            }
            for (method, path) in [
                ("GET", "/apps/com.example.app"), ("DELETE", "/apps/com.example.app"), ("GET", "/devices"),
                ("GET", "/devices?app_id=com.example.app"), ("GET", "/audit"), ("GET", "/audit/verify"),
                ("GET", "/audit/head"),
                ("GET", "/audit?app_id=com.example.app"), ("GET", "/credentials"), ("POST", "/signing-keys/rotate"),
                ("GET", Self.device), ("POST", Self.device + "/revoke"),
            ] {
                #expect(try await server.administer(method, path, admin).status == 403, "\(method) \(path)")
            }
            #expect(try await server.administer("GET", "/devices?app_id=com.example.other", admin).status == 200)
        }
    }

    /// The record of an Android app with this list of revoked keys and this token endpoint.
    private static func record(list: String?, tokens: String?) -> JSONValue {
        let account: JSONValue =
            tokens.map { ["client_email": "a@example.com", "private_key": "key", "token_uri": .string($0)] } ?? .null
        return [
            "app_id": "com.example.play",
            "android": [
                "packages": ["com.example.play"],
                "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                "play_integrity": ["service_account": account],
                "key_attestation": ["status_list": list.map { .string($0) } ?? .null],
            ],
        ]
    }

    @Test func `a credential for some apps cannot name a file or a URL`() async throws {
        try await TestServer.with { server in
            let operators = try await server.credential(.admin)
            let (google, tokens) = (
                "https://android.googleapis.com/attestation/status", "https://oauth2.googleapis.com/token"
            )
            let (list, proxy) = ("/etc/synheart/revoked.json", "https://tokens.internal.example/token")
            func put(_ credential: String, _ record: JSONValue) async throws -> RawResponse {
                try await server.administer("PUT", "/apps/com.example.play", credential, body: record)
            }
            let added = try await server.administer(
                "POST", "/apps", operators, body: Self.record(list: list, tokens: proxy))
            #expect(added.status == 201, "\(added.text)")
            let bound = try await server.credential(.admin, apps: ["com.example.play"])
            let lists = [
                "/etc/shadow", "file:///etc/shadow", "http://127.0.0.1:9464/metrics", "https://169.254.169.254/latest",
                google + "/", "",
            ]
            let otherTokens = ["https://169.254.169.254/", "http://localhost:8080/", tokens + "/", list]
            let refused =
                lists.map { Self.record(list: $0, tokens: tokens) }
                + otherTokens.map { Self.record(list: google, tokens: $0) }
            for record in refused {
                let answer = try await put(bound, record)
                #expect(answer.status == 403 && answer.code == "FORBIDDEN", "\(record) \(answer.text)")
                #expect(answer.json["message"]?.string?.contains("for all apps") == true)
            }
            // A credential for some apps may send the record back with masked secrets. The sources (the revocation list and the
            // token endpoint) stay as they were.
            var masked = try await server.administer("GET", "/apps/com.example.play", bound).json
            masked["name"] = "renamed"
            #expect(try await put(bound, .object(masked)).status == 200)
            let kept = try #require(try await server.service.apps.record(AppID("com.example.play")))
            #expect(kept.name == "renamed" && kept.sources.map(\.place) == [list, proxy])
            let allowed: [(String, String?)] = [(google, proxy), ("none", tokens), ("none", nil), (google, tokens)]
            for (list, tokens) in allowed {
                let answer = try await put(bound, Self.record(list: list, tokens: tokens))
                #expect(answer.status == 200, "\(answer.text)")
            }
            // `list` was removed from the record, so it is a new source when it is named again. Only a credential for all apps
            // may name a new source.
            #expect(try await put(bound, Self.record(list: list, tokens: tokens)).status == 403)
            #expect(try await put(operators, Self.record(list: "/etc/other.json", tokens: proxy)).status == 200)
        }
    }

    @Test func `the audit log is read and verified`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let device = try await TestDevice.register(at: server)
            let all = try await server.administer("GET", "/audit?limit=2", viewer)
            #expect(all.json["events"]?.array?.count == 2)
            let next = try #require(all.json["next_before"]?.integer)
            #expect(
                try await server.administer("GET", "/audit?before=\(next)", viewer).json["events"]?.array?.count == 1)
            let one = try await server.administer(
                "GET", "/audit?app_id=com.example.app&device_id=\(device.id)", viewer)
            #expect(one.json["events"]?.array?.first?.object?["code"]?.string == "device.registered", "\(one.text)")
            #expect(try await server.administer("GET", "/audit/verify", viewer).json["intact"]?.bool == true)
        }
    }

    @Test func `an audit head is signed and found again`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let head = try await server.administer("GET", "/audit/head", viewer)
            let text = try #require(head.json["head"]?.string, "\(head.text)")
            let key = try Curve25519.Signing.PublicKey(
                rawRepresentation: #require(head.json["public_key"]?.string.flatMap { Base64.standard.decode($0) }))
            // The public key alone verifies an audit head (the signed end of the log), without the service.
            let parsed = try AuditHead(text)
            let signed = try #require(text.split(separator: ".").dropLast().joined(separator: ".").data(using: .utf8))
            #expect(key.isValidSignature(parsed.signature, for: signed))
            _ = try await TestDevice.register(at: server)
            let verified = try await server.administer("GET", "/audit/verify?head=\(text)", viewer)
            #expect(verified.json["finding"]?.string == "intact", "\(verified.text)")
            let foreign = try await server.administer(
                "GET", "/audit/verify?head=\(text.replacing("audit-head-v1.2.", with: "audit-head-v1.1."))", viewer)
            #expect(foreign.json["finding"]?.string == "foreign_head", "\(foreign.text)")
            #expect(try await server.administer("GET", "/audit/verify?head=x", viewer).status == 400)
        }
    }

    @Test func `statistics count devices`() async throws {
        try await TestServer.with { server in
            _ = try await TestDevice.register(at: server)
            let viewer = try await server.credential(.viewer)
            let response = try await server.administer("GET", "/statistics", viewer)
            #expect(response.json["devices"]?.object?["registered"]?.integer == 1, "\(response.text)")
        }
    }

    @Test func `a rotated signing key is published beside the old one`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            #expect(try await server.send("GET", Route.keySet.rawValue).json["keys"]?.array?.count == 2)
            let rotated = try await server.administer("POST", "/signing-keys/rotate", admin)
            #expect(rotated.status == 200, "\(rotated.text)")
            #expect(try await server.send("GET", Route.keySet.rawValue).json["keys"]?.array?.count == 3)
            let listed = try await server.administer("GET", "/signing-keys", admin)
            #expect(listed.json["signing_keys"]?.array?.last?.object?["kid"] == rotated.json["kid"])
            #expect(!listed.text.contains("sealed"))
        }
    }

    @Test func `a failing store is 503`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            await server.stores.fail(.devices)
            let response = try await server.administer("GET", "/devices", viewer)
            #expect(response.status == 503)
            #expect(response.value("Retry-After") != nil)
        }
    }

    @Test func `a body is JSON and bounded`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            func post(_ headers: [(String, String)], _ body: [UInt8]) async throws -> Int {
                try await RawConnection.exchange(
                    port: server.operationsPort,
                    RawRequest(
                        method: "POST", target: "/admin/v1/apps",
                        headers: [("Authorization", "Bearer \(admin)")] + headers, body: body)
                ).status
            }
            #expect(try await post([], Array("{}".utf8)) == 415)
            let json = [("Content-Type", "application/json")]
            #expect(try await post(json, Array("{".utf8)) == 400)
            #expect(try await post(json, Array(#"{"app_id":"a","app_id":"b"}"#.utf8)) == 400)
            #expect(try await post(json, [UInt8](repeating: 32, count: 300_000)) == 413)
        }
    }
}
