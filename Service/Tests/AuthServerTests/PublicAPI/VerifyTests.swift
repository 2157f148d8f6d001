import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// `/verify` over HTTP: verdicts on devices' requests, and errors of the caller itself.
@Suite struct VerifyTests {
    private func ask(
        _ server: TestServer, _ question: JSONValue, _ credential: String?
    ) async throws -> RawResponse {
        try await server.post(.verify, question, credential.map { [("Authorization", "Bearer \($0)")] } ?? [])
    }

    @Test func `a signed request is verified once`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let question = try device.question(at: server.clock.now)
            let verified = try await ask(server, question, credential)
            #expect(verified.status == 200, "\(verified.text)")
            #expect(verified.json["verified"]?.bool == true)
            #expect(verified.json["device_id"]?.string == device.id)
            let replayed = try await ask(server, question, credential)
            #expect(replayed.status == 409)
            #expect(replayed.json["verified"]?.bool == false)
        }
    }

    @Test func `a refused request is a verdict`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let old = try await ask(server, device.question(at: server.clock.now - 301), credential)
            #expect(old.status == 401)
            #expect(old.code == "CLOCK_SKEW")
            #expect(old.json["verified"]?.bool == false)
            let unsigned = try await ask(
                server,
                device.question(at: server.clock.now) { $0.removeAll { $0.0 == HeaderName.signature } }, credential)
            #expect(unsigned.status == 400)
            #expect(unsigned.json["verified"]?.bool == false)
            for method in ["", "P0ST", "POST ", "PO\nST", "É", String(repeating: "A", count: 33)] {
                var question = try #require(try device.question(at: server.clock.now).object)
                question["method"] = .string(method)
                let malformed = try await ask(server, .object(question), credential)
                #expect(malformed.status == 400 && malformed.json["verified"]?.bool == false, "\(method)")
            }
        }
    }

    @Test func `an audience that is not the app's does not look like a verdict`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            var question = try #require(try device.question(at: server.clock.now).object)
            question["identity_audience"] = "https://other.example.com"
            let refused = try await ask(server, .object(question), credential)
            #expect(refused.status == 400 && refused.code == "INVALID_REQUEST" && refused.json["verified"] == nil)
            question["identity_audience"] = .string(TestServer.appID)
            let verified = try await ask(server, .object(question), credential)
            #expect(verified.status == 200, "\(verified.text)")
            #expect(verified.json["identity_token"]?.string?.split(separator: ".").count == 3)
        }
    }

    @Test func `errors of the credential never look like a verdict`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let question = try device.question(at: server.clock.now)
            try await server.addApp("com.example.other")
            let other = try await server.credential(.service, apps: ["com.example.other"])
            let admin = try await server.credential(.admin)
            for (credential, status) in [(nil, 401), ("sya_x_y", 401), (other, 403), (admin, 403)] as [(String?, Int)] {
                let response = try await ask(server, question, credential)
                #expect(response.status == status, "\(response.text)")
                #expect(response.code == (status == 401 ? "UNAUTHORIZED" : "FORBIDDEN"))
                #expect(response.json["verified"] == nil)
            }
            let twice = try await server.post(
                .verify, question, [("Authorization", "Bearer \(admin)"), ("Authorization", "Bearer \(other)")])
            #expect(twice.status == 401)
        }
    }

    @Test func `a malformed verify call gets no verdict`() async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let response = try await ask(server, ["method": "GET"], credential)
            #expect(response.status == 400)
            #expect(response.json["verified"] == nil)
        }
    }

    @Test func `a repeated verify call with an id gets the same verdict`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            var object = try #require(try device.question(at: server.clock.now).object)
            object["verification_id"] = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
            for _ in 0..<3 {
                #expect(try await ask(server, .object(object), credential).json["verified"]?.bool == true)
            }
        }
    }

    @Test func `an observed app refuses nothing but says so`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            var record = TestServer.record
            record["mode"] = "observe"
            #expect(try await server.service.apps.change(.init(.init(.object(record))), actor: "test"))
            let response = try await ask(server, device.question(at: server.clock.now - 400), credential)
            #expect(response.status == 200)
            #expect(response.json["verified"]?.bool == false)
            #expect(response.json["observed"]?.string == "CLOCK_SKEW")
            await server.stores.fail(.claim)
            let failed = try await ask(server, device.question(at: server.clock.now), credential)
            #expect(failed.status == 503)
            #expect(failed.json["verified"]?.bool == false)
        }
    }

    @Test func `a request that names its app twice or wrongly counts for the only app of the credential`() async throws
    {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            func ask(_ ids: [String]) async throws -> RawResponse {
                let question = try device.question(at: server.clock.now) { headers in
                    headers.removeAll { $0.0 == HeaderName.appID }
                    headers += ids.map { (HeaderName.appID, $0) }
                }
                return try await self.ask(server, question, credential)
            }
            let names = [
                ["com.example.other", TestServer.appID], [TestServer.appID, "com.example.other"], ["a b"], [""],
            ]
            for ids in names {
                let enforced = try await ask(ids)
                #expect(enforced.status == 400 && enforced.json["verified"]?.bool == false, "\(ids)")
            }
            var record = TestServer.record
            record["mode"] = "observe"
            #expect(try await server.service.apps.change(.init(.init(.object(record))), actor: "test"))
            for ids in names {
                let observed = try await ask(ids)
                #expect(observed.status == 200 && observed.json["observed"]?.string == "INVALID_REQUEST", "\(ids)")
            }
            let text = try await server.operations("/metrics").text
            for verdict in ["INVALID_REQUEST", "observed_INVALID_REQUEST"] {
                let series =
                    "synheart_verdicts_total{app=\"\(TestServer.appID)\",verdict=\"\(verdict)\"} \(names.count)"
                #expect(text.contains(series), "\(series)")
            }
        }
    }

    @Test func `under observation a body beyond the limit and a malformed method are observed`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            var record = TestServer.record
            record["mode"] = "observe"
            #expect(try await server.service.apps.change(.init(.init(.object(record))), actor: "test"))
            for count in [1024 * 1024 + 1, 3 * 1024 * 1024] {
                let body = [UInt8](repeating: 1, count: count)
                let tooLarge = try await ask(server, device.question(body: body, at: server.clock.now), credential)
                #expect(tooLarge.status == 200 && tooLarge.json["observed"]?.string == "PAYLOAD_TOO_LARGE", "\(count)")
            }
            var question = try #require(try device.question(at: server.clock.now).object)
            question["method"] = "P0ST"
            let malformed = try await ask(server, .object(question), credential)
            #expect(
                malformed.status == 200 && malformed.json["observed"]?.string == "INVALID_REQUEST", "\(malformed.text)")
        }
    }

    @Test func `verify accepts a large body`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let largest = [UInt8](repeating: 1, count: 1024 * 1024)
            let response = try await ask(server, device.question(body: largest, at: server.clock.now), credential)
            #expect(response.status == 200, "\(response.text)")
            let tooLarge = try await ask(server, device.question(body: largest + [1], at: server.clock.now), credential)
            #expect(tooLarge.status == 413)
            #expect(tooLarge.json["verified"] == nil)
        }
    }
}
