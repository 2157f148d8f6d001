import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

@testable import AuthServer

/// Each reason to rotate, over HTTP: how the device learns of it, which requests are still accepted, and that a rotation ends the
/// demand.
@Suite struct RotationTriggerTests {
    private static let day: Int64 = 86_400

    /// The answers to the device's requests for its status and a token, the verdict of `/verify`, and the values of the rotate
    /// header.
    private struct Met: Equatable {
        var mustRotate: Bool
        var told: [String]
        var token: String
        var verified: String
    }

    private func meets(_ device: TestDevice, _ server: TestServer) async throws -> Met {
        let status = try await device.send(.status, to: server)
        try #require(status.status == 200, "\(status.text)")
        let token = try await device.send(.token, to: server, body: [:])
        // The rotate header does not depend on whether the request is refused.
        #expect(token.values("X-Synheart-Rotate") == status.values("X-Synheart-Rotate"))
        let service = try await server.credential(.service, apps: [TestServer.appID])
        let verdict = try await server.post(
            .verify, device.question(at: server.clock.now), [("Authorization", "Bearer \(service)")])
        // The answer to `/verify` has no rotate header: it goes to a backend, and only the device can rotate its key.
        #expect(verdict.values("X-Synheart-Rotate").isEmpty)
        return Met(
            mustRotate: status.json["must_rotate"]?.bool ?? false, told: status.values("X-Synheart-Rotate"),
            token: token.code ?? "\(token.status)", verified: verdict.code ?? "\(verdict.status)")
    }

    private func rotate(
        _ device: TestDevice, _ server: TestServer, to next: P256.Signing.PrivateKey = P256.Signing.PrivateKey()
    ) async throws -> (response: RawResponse, device: TestDevice) {
        let response = try await device.send(
            .rotateKey, to: server,
            body: [
                "app_id": .string(TestServer.appID), "device_id": .string(device.id),
                "new_public_key": .string(Base64.standard.encode(Array(next.publicKey.derRepresentation))),
            ])
        return (response, TestDevice(key: next, id: device.id))
    }

    private func change(_ server: TestServer, keys: JSONValue) async throws {
        var record = TestServer.record
        record["keys"] = keys
        let admin = try await server.credential(.admin)
        let changed = try await server.administer(
            "PUT", "/apps/\(TestServer.appID)", admin, body: .object(record))
        try #require(changed.status == 200, "\(changed.text)")
    }

    /// Rotates the device's key, and expects that no later response demands a rotation.
    private func settles(_ device: TestDevice, _ server: TestServer) async throws {
        let (response, next) = try await rotate(device, server)
        #expect(response.status == 200, "\(response.text)")
        #expect(response.values("X-Synheart-Rotate").isEmpty)
        #expect(try await meets(next, server) == Met(mustRotate: false, told: [], token: "200", verified: "200"))
    }

    @Test func `a repeated rotation is told of a demand that came after it`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let next = P256.Signing.PrivateKey()
            let by = server.clock.now + 3600
            #expect(try await rotate(device, server, to: next).response.values("X-Synheart-Rotate").isEmpty)
            try await server.service.administration.forceRotation(
                DeviceID(device.id), of: AppID(TestServer.appID), by: by, actor: "test")
            for key in [device.key, next] {
                let (response, _) = try await rotate(TestDevice(key: key, id: device.id), server, to: next)
                #expect(response.status == 200)
                #expect(response.values("X-Synheart-Rotate") == ["required; by=\(by); reason=scheduled"])
            }
        }
    }

    @Test func `a device must rotate because an operator demands it`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.operator)
            let (by, path) = (
                server.clock.now + 60, "/apps/\(TestServer.appID)/devices/\(device.id)/force-rotation"
            )
            #expect(try await server.administer("POST", path, credential, body: ["within_seconds": 60]).status == 200)
            let told = ["required; by=\(by); reason=scheduled"]
            #expect(try await meets(device, server) == Met(mustRotate: true, told: told, token: "200", verified: "200"))
            server.clock.advance(60)
            #expect(try await meets(device, server) == Met(mustRotate: true, told: told, token: "200", verified: "200"))
            server.clock.advance(1)
            #expect(
                try await meets(device, server)
                    == Met(mustRotate: true, told: told, token: "KEY_EXPIRED", verified: "KEY_EXPIRED"))
            try await settles(device, server)
        }
    }

    @Test func `a device must rotate a key that is too old`() async throws {
        try await TestServer.with { server in
            try await change(server, keys: ["maximum_age_days": 30, "grace_days": 7])
            let (device, late) = (try await TestDevice.register(at: server), try await TestDevice.register(at: server))
            server.clock.advance(30 * Self.day)
            #expect(
                try await meets(device, server) == Met(mustRotate: false, told: [], token: "200", verified: "200"))
            server.clock.advance(1)
            #expect(
                try await meets(device, server)
                    == Met(mustRotate: true, told: [], token: "KEY_EXPIRED", verified: "KEY_EXPIRED"))
            try await settles(device, server)
            server.clock.advance(7 * Self.day)
            #expect(
                try await meets(late, server)
                    == Met(mustRotate: false, told: [], token: "KEY_EXPIRED", verified: "KEY_EXPIRED"))
            let (refused, _) = try await rotate(late, server)
            #expect(refused.status == 403 && refused.code == "KEY_EXPIRED", "\(refused.text)")
            #expect(try await late.send(.device, to: server).status == 204)
        }
    }

    @Test func `a device must rotate a key from before a compromise`() async throws {
        try await TestServer.with { server in
            let old = try await TestDevice.register(at: server)
            server.clock.advance(100)
            let fresh = try await TestDevice.register(at: server)
            // A compromise demand with a future date has no effect yet.
            let (before, by) = (server.clock.now + 10, server.clock.now + 60)
            let policy = JSONObject([("keys_before", .string(before.iso8601)), ("rotate_by", .string(by.iso8601))])
            try await change(server, keys: ["compromise": .object(policy)])
            let trusted = Met(mustRotate: false, told: [], token: "200", verified: "200")
            #expect(try await meets(old, server) == trusted)
            server.clock.advance(10)
            let later = try await TestDevice.register(at: server)
            let told = Met(
                mustRotate: true, told: ["required; by=\(by); reason=compromise"], token: "200", verified: "200")
            #expect(try await meets(old, server) == told)
            #expect(try await meets(fresh, server) == told)
            #expect(try await meets(later, server) == trusted)
            try await settles(fresh, server)
            server.clock.advance(51)
            var expired = told
            (expired.token, expired.verified) = ("KEY_EXPIRED", "KEY_EXPIRED")
            #expect(try await meets(old, server) == expired)
            #expect(try await meets(later, server) == trusted)
            // After the deadline the device must register anew. It cannot rotate, because a thief of the key could rotate too.
            let (refused, _) = try await rotate(old, server)
            #expect(refused.status == 403 && refused.code == "KEY_EXPIRED", "\(refused.text)")
            #expect(try await old.send(.device, to: server).status == 204)
        }
    }

    @Test func `an operator demands a rotation for compromise`() async throws {
        try await TestServer.with { server in
            let (device, late) = (try await TestDevice.register(at: server), try await TestDevice.register(at: server))
            let credential = try await server.credential(.operator)
            let by = server.clock.now + 60
            for device in [device, late] {
                let path = "/apps/\(TestServer.appID)/devices/\(device.id)/force-rotation"
                let forced = try await server.administer(
                    "POST", path, credential, body: ["within_seconds": 60, "reason": "compromise"])
                #expect(forced.status == 200, "\(forced.text)")
                #expect(forced.json["must_rotate_reason"]?.string == "compromise")
            }
            let told = ["required; by=\(by); reason=compromise"]
            #expect(try await meets(device, server) == Met(mustRotate: true, told: told, token: "200", verified: "200"))
            try await settles(device, server)
            server.clock.advance(61)
            let (refused, _) = try await rotate(late, server)
            #expect(refused.status == 403 && refused.code == "KEY_EXPIRED", "\(refused.text)")
        }
    }

    @Test func `the sooner of two reasons counts`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            server.clock.advance(100)
            let now = server.clock.now
            for (within, by, sooner) in [(60, 90, 60), (90, 60, 60)] as [(Int64, Int64, Int64)] {
                try await server.service.administration.forceRotation(
                    DeviceID(device.id), of: AppID(TestServer.appID), by: now + within, actor: "test")
                let policy = JSONObject([
                    ("keys_before", .string(now.iso8601)), ("rotate_by", .string((now + by).iso8601)),
                ])
                try await change(server, keys: ["compromise": .object(policy)])
                let status = try await device.send(.status, to: server)
                #expect(status.values("X-Synheart-Rotate") == ["required; by=\(now + sooner); reason=compromise"])
                // The admin API shows the sooner time too.
                let shown = try await server.administer(
                    "GET", "/apps/\(TestServer.appID)/devices/\(device.id)", try await server.credential(.admin))
                #expect(shown.json["must_rotate_by"]?.string == (now + sooner).iso8601)
            }
        }
    }

    @Test func `a device that reports a compromise has no overlap`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let next = P256.Signing.PrivateKey()
            let rotated = try await device.send(
                .rotateKey, to: server,
                body: [
                    "app_id": .string(TestServer.appID), "device_id": .string(device.id), "reason": "compromise",
                    "new_public_key": .string(Base64.standard.encode(Array(next.publicKey.derRepresentation))),
                ])
            #expect(rotated.status == 200, "\(rotated.text)")
            #expect(try await device.send(.status, to: server).code == "INVALID_SIGNATURE")
            #expect(try await TestDevice(key: next, id: device.id).send(.status, to: server).status == 200)
        }
    }
}
