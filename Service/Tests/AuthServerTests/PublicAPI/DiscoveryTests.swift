import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// The documents in which other services find the keys of device tokens.
@Suite struct DiscoveryTests {
    private static let documents: [Route] = [.openIDConfiguration, .authorizationServer]

    @Test(arguments: documents) func `a document names the issuer and its keys, and nothing else`(
        route: Route
    ) async throws {
        try await TestServer.with(publicOrigin: "https://auth.example.com") { server in
            let answer = try await server.send("GET", route.rawValue)
            #expect(answer.status == 200 && answer.value("Cache-Control") == "no-store")
            #expect(answer.value("Content-Type") == "application/json")
            let expected: JSONValue = [
                "issuer": "https://auth.example.com", "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                "id_token_signing_alg_values_supported": ["ES256"], "subject_types_supported": ["public"],
                "response_types_supported": ["none"],
            ]
            #expect(try JSONValue(parsing: answer.body) == expected)
            #expect(try await server.send("HEAD", route.rawValue).body.isEmpty)
        }
    }

    @Test(arguments: documents) func `without a public origin there is no document`(route: Route) async throws {
        try await TestServer.with { server in
            let answer = try await server.send("GET", route.rawValue)
            #expect(answer.status == 404 && answer.code == "NOT_FOUND")
            #expect(answer.value("Cache-Control") == "no-store")
        }
    }

    @Test func `both addresses of the key set have the same keys, with or without a public origin`() async throws {
        try await TestServer.with { server in
            let (one, other) = (
                try await server.send("GET", Route.keySet.rawValue),
                try await server.send("GET", Route.wellKnownKeySet.rawValue)
            )
            #expect(one.status == 200 && one.body == other.body)
            #expect(other.value("Cache-Control") == "public, max-age=300")
        }
    }
}
