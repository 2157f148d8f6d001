import AuthContract
import AuthService
import Crypto
import Logging
import ServiceTestHelpers
import StrictJSON
import Testing

@testable import AuthServer

/// A refusal that a setting may cause is logged as a warning with the received and the configured value.
@Suite struct SetUpWarningTests {
    /// The warnings about requests while the body runs.
    private func warnings(_ body: @Sendable (TestServer) async throws -> Void) async throws -> [String] {
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { try await body($0) }
        return lines.all.filter { $0.message == "request" && $0.level == .warning }.map { $0.metadata["reason"] ?? "" }
    }

    @Test func `a Host that the operations listener does not answer`() async throws {
        let reasons = try await warnings { server async throws in
            #expect(try await server.operations("/openapi.json", host: "evil.example:9464").status == 400)
            #expect(try await server.operations("/nowhere").status == 404)
        }
        #expect(reasons == ["Host is evil.example:9464, and operations.hosts are 127.0.0.1, [::1], localhost"])
    }

    @Test func `a device of a platform that the app's record does not have`() async throws {
        let reasons = try await warnings { server async throws in
            let (answer, _) = try await TestDevice.register(P256.Signing.PrivateKey(), at: server) {
                $0["platform"] = "android"
            }
            #expect(answer.code == "INVALID_ATTESTATION")
        }
        #expect(reasons == ["a device of android, and the app's record has no member android"])
    }

    @Test func `an issuer without server.public_origin`() async throws {
        let reasons = try await warnings { server async throws in
            #expect(try await server.send("GET", Route.openIDConfiguration.rawValue).status == 404)
        }
        #expect(reasons == ["a client looks for the issuer, and server.public_origin is not set"])
    }

    @Test func `a credential for another app, and one that has expired`() async throws {
        let reasons = try await warnings { server async throws in
            let device = try await TestDevice.register(at: server)
            try await server.addApp("com.example.other")
            let credential = try await server.credential(.service, apps: ["com.example.other"])
            for status in [403, 401] {
                let question = try device.question(at: server.clock.now)
                let answer = try await server.post(.verify, question, [("Authorization", "Bearer \(credential)")])
                #expect(answer.status == status)
                server.clock.advance(3600)
            }
        }
        try #require(reasons.count == 2, "\(reasons)")
        #expect(reasons[0].hasPrefix("asked about com.example.app, and credential "))
        #expect(reasons[0].hasSuffix(" has role service for com.example.other"))
        #expect(reasons[1].contains(" expired at "))
    }

    @Test func `a refusal that only the client can cause is no warning`() async throws {
        let reasons = try await warnings { server async throws in
            let device = try await TestDevice.register(at: server)
            _ = try await device.send(.status, to: server) { headers in
                headers[3].1 = (server.clock.now - 3600).description
            }
            _ = try await server.post(.verify, [:], [("Authorization", "Bearer sya_00_wrong")])
            _ = try await server.send("GET", "/nowhere")
        }
        #expect(reasons == [])
    }
}
