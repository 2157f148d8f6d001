import AuthContract
import StoreConformance
import Testing

@testable import AuthService

@Suite("Credentials")
struct CredentialTests {
    private func made(
        _ world: World, role: CredentialRole = .service, life: Int64 = 1000
    ) async throws
        -> (credential: Credential, text: Secret)
    {
        try await world.service.credentials.create(
            name: "backend", role: role, scope: .apps([AppID(World.appID)]), life: life, actor: "test")
    }

    @Test("a credential authenticates with its text")
    func bearer() async throws {
        let world = try await World()
        let (credential, text) = try await made(world)
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let found = try await world.service.credentials.authenticate(
                authorization: "\(scheme) \(text.exposed)", from: world.address)
            #expect(found == credential)
        }
        #expect(text.exposed.hasPrefix("sya_") && "\(text)" == "(secret)")
        #expect(credential.secretHash.count == 32)
    }

    /// Some stores cannot keep U+0000 in a text.
    @Test("a name has no U+0000", arguments: ["a\u{0}", "\u{0}", "a\u{0}b"])
    func names(_ name: String) async throws {
        let world = try await World()
        await #expect(throws: ContractError.self) {
            try await world.service.credentials.create(
                name: name, role: .admin, scope: .allApps, life: 60, actor: "test")
        }
    }

    @Test("a missing or different credential is UNAUTHORIZED")
    func wrong() async throws {
        let world = try await World()
        let text = try await made(world).text.exposed
        let other = try await made(world).text.exposed
        let mixed = text.prefix(21) + other.dropFirst(21)
        let wrong: [String?] = [
            nil, "", text, "Basic \(text)", "Bearer", "Bearer ", "Bearer  \(text)", "Bearer \(text) ",
            "Bearer \(text)x",
            "Bearer \(text.dropLast())", "Bearer \(text.uppercased())", "Bearer \(mixed)", "Bearer sya_",
            "Bearer sya__",
            "Bearer \(String(repeating: "x", count: 100_000))",
        ]
        for authorization in wrong {
            try await expect(.unauthorized, "\(authorization?.prefix(40) ?? "none")") {
                try await world.service.credentials.authenticate(authorization: authorization, from: world.address)
            }
        }
    }

    @Test("a credential expires to the second, and can be revoked once")
    func ends() async throws {
        let world = try await World()
        let (first, firstText) = try await made(world)
        let (_, secondText) = try await made(world)
        let credentials = world.service.credentials
        #expect(try await credentials.revoke(first.id, actor: "test"))
        #expect(try await credentials.revoke(first.id, actor: "test") == false)
        #expect(try await credentials.revoke("nobody", actor: "test") == false)
        try await expect(.unauthorized) {
            try await credentials.authenticate(authorization: "Bearer \(firstText.exposed)", from: world.address)
        }
        world.clock.advance(999)
        _ = try await credentials.authenticate(authorization: "Bearer \(secondText.exposed)", from: world.address)
        world.clock.advance(1)
        try await expect(.unauthorized) {
            try await credentials.authenticate(authorization: "Bearer \(secondText.exposed)", from: world.address)
        }
    }

    @Test("a cached credential is compared, and one that another node revoked ends within seconds")
    func isNotBelievedFromMemory() async throws {
        let world = try await World()
        let (credential, text) = try await made(world)
        let authorization = "Bearer \(text.exposed)"
        _ = try await world.service.credentials.authenticate(authorization: authorization, from: world.address)
        try await expect(.unauthorized) {
            try await world.service.credentials.authenticate(
                authorization: authorization.dropLast() + "!", from: world.address)
        }
        #expect(try await world.anotherNode().credentials.revoke(credential.id, actor: "test"))
        world.clock.advance(5)
        try await expect(.unauthorized) {
            try await world.service.credentials.authenticate(authorization: authorization, from: world.address)
        }
    }

    @Test("an address that sent too many unknown credentials is refused before the store is read")
    func unknownCredentials() async throws {
        let world = try await World { $0.strangers = Rate(burst: 3, perMinute: 1) }
        let known = "Bearer \(try await made(world).text.exposed)"
        let fresh = "Bearer \(try await made(world).text.exposed)"
        let credentials = world.service.credentials
        _ = try await credentials.authenticate(authorization: known, from: world.address)
        // A missing credential is not counted as a failed attempt.
        for _ in 0..<10 {
            try await expect(.unauthorized) {
                try await credentials.authenticate(authorization: nil, from: world.address)
            }
        }
        let wrong = ["Bearer sya_0000000000000000_AAAA", known + "x", "Bearer sya_1111111111111111_AAAA"]
        for authorization in wrong {
            try await expect(.unauthorized) {
                try await credentials.authenticate(authorization: authorization, from: world.address)
            }
        }
        await world.stores.fail(.credential)
        for authorization in wrong + [fresh] {
            let refusal = try await expect(.rateLimited) {
                try await credentials.authenticate(authorization: authorization, from: world.address)
            }
            #expect(refusal?.retryAfter == 60)
        }
        // A flood from the same address does not lock out a credential that was valid before, whether it is cached or re-read.
        _ = try await credentials.authenticate(authorization: known, from: world.address)
        await world.stores.recover()
        world.clock.advance(5)
        _ = try await credentials.authenticate(authorization: known, from: world.address)
        try await expect(.rateLimited) {
            try await credentials.authenticate(authorization: fresh, from: world.address)
        }
        _ = try await credentials.authenticate(authorization: fresh, from: ClientAddress("192.0.2.99"))
        world.clock.advance(55)
        _ = try await credentials.authenticate(authorization: fresh, from: world.address)
    }

    @Test("one credential that goes on being wrong locks out no other one at its address")
    func repeatedlyWrong() async throws {
        let world = try await World { $0.strangers = Rate(burst: 20, perMinute: 1) }
        let fresh = "Bearer \(try await made(world).text.exposed)"
        let credentials = world.service.credentials
        func attempt(_ text: String, from address: ClientAddress) async throws {
            _ = try await credentials.authenticate(authorization: text, from: address)
        }
        let wrong = "Bearer sya_0000000000000000_AAAA"
        for _ in 0..<10 { try await expect(.unauthorized) { try await attempt(wrong, from: world.address) } }
        for secret in 0..<100 {
            let refusal = try await expect(.rateLimited) {
                try await attempt(wrong + String(secret), from: world.address)
            }
            #expect(refusal?.retryAfter == 10)
        }
        // The limit does not apply to the same credential from another address, or to another credential from this address.
        try await expect(.unauthorized) { try await attempt(wrong, from: ClientAddress("192.0.2.99")) }
        try await attempt(fresh, from: world.address)
        world.clock.advance(10)
        try await expect(.unauthorized) { try await attempt(wrong, from: world.address) }
        // Attempts with many different ids are limited by their address.
        for id in 0..<9 {
            try await expect(.unauthorized) { try await attempt("Bearer sya_\(id)_AAAA", from: world.address) }
        }
        try await expect(.rateLimited) { try await attempt("Bearer sya_9_AAAA", from: world.address) }
    }

    @Test("a known credential is not refused for failures of others at its address")
    func knownAfterExternalChange() async throws {
        let world = try await World { $0.strangers = Rate(burst: 3, perMinute: 1) }
        let known = "Bearer \(try await made(world).text.exposed)"
        let fresh = "Bearer \(try await made(world).text.exposed)"
        let credentials = world.service.credentials
        let id = try await credentials.authenticate(authorization: known, from: world.address).id
        for _ in 0..<3 {
            try await expect(.unauthorized) {
                try await credentials.authenticate(
                    authorization: "Bearer sya_0000000000000000_AAAA", from: world.address)
            }
        }
        credentials.forget()
        _ = try await credentials.authenticate(authorization: known, from: world.address)
        try await expect(.rateLimited) {
            try await credentials.authenticate(authorization: fresh, from: world.address)
        }
        // Another process revokes the credential. The notification of that change calls `forget`, and the store is read again.
        let stored = try #require(try await world.stores.credential(id))
        let revocation = try #require(stored.applying(.revoke, at: world.clock.now, by: "test"))
        #expect(try await world.stores.save(revocation))
        credentials.forget()
        try await expect(.unauthorized) {
            try await credentials.authenticate(authorization: known, from: world.address)
        }
    }

    @Test("a service credential needs apps, and every credential a name and an expiry")
    func impossible() async throws {
        let world = try await World()
        let credentials = world.service.credentials
        let app = try AppID(World.appID)
        let attempts: [(String, CredentialScope, Int64)] = [
            ("x", .apps([]), 1000), ("x", .allApps, 1000), ("", .apps([app]), 1000), ("x", .apps([app]), 0),
            ("x", .apps([app]), .max), ("x", .apps([app, try AppID("unknown")]), 1000),
            // A reader sees one letter, but it has 257 bytes.
            ("a" + String(repeating: "\u{301}", count: 128), .apps([app]), 1000),
        ]
        for (name, scope, life) in attempts {
            await #expect(throws: ContractError.self) {
                try await credentials.create(name: name, role: .service, scope: scope, life: life, actor: "test")
            }
        }
    }

    @Test("the secret is in neither the store nor the audit log")
    func hashed() async throws {
        let world = try await World()
        let text = try await made(world).text.exposed
        let secret = String(text.dropFirst(21))
        let stored = try await world.stores.credentials()
        #expect(!"\(stored)".contains(secret))
        #expect(try await world.audited(.credentialCreated).allSatisfy { !"\($0)".contains(secret) })
    }

    @Test("a store that fails is 503, not 401")
    func storeFails() async throws {
        let world = try await World()
        let text = try await made(world).text.exposed
        await world.stores.fail(.credential)
        try await expect(.serviceUnavailable) {
            try await world.service.credentials.authenticate(authorization: "Bearer \(text)", from: world.address)
        }
    }
}
