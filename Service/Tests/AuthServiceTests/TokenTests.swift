import AuthContract
import AuthService
import Bytes
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Device tokens")
struct TokenTests {
    /// Checks a token as another backend does: finds the key in the set, verifies the signature, reads the claims.
    private func claims(_ token: String, _ keys: JSONObject) throws -> (header: JSONObject, claims: JSONObject) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false).map { Base64.url.decode($0) }
        try #require(parts.count == 3)
        let texts = parts.compactMap { $0 }
        try #require(texts.count == 3)
        let header = try #require(try JSONValue(parsing: texts[0]).object)
        let key = try #require(
            keys["keys"]?.array?.compactMap(\.object).first { $0["kid"] == header["kid"] }, "an unknown key")
        let point =
            [0x04] + (try #require(key["x"]?.string.flatMap { Base64.url.decode($0) }))
            + (try #require(key["y"]?.string.flatMap { Base64.url.decode($0) }))
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: texts[2])
        let input = token.prefix(upTo: try #require(token.lastIndex(of: ".")))
        let publicKey = try P256.Signing.PublicKey(x963Representation: point)
        try #require(publicKey.isValidSignature(signature, for: Array(input.utf8)))
        return (header, try #require(try JSONValue(parsing: texts[1]).object))
    }

    @Test("a token names device, audience and expiry, and verifies with the published key")
    func token() async throws {
        let world = try await World(origin: "https://auth.example.com")
        let device = try await world.device()
        let answer = try await world.service.issueToken(
            TokenRequest(),
            try await world.service.authenticate(try world.signed(device, for: .token), for: .token))
        #expect(answer.expiresIn == 600)
        let keys = try await world.service.signingKeys.keySet()
        let (header, claims) = try claims(answer.token, keys)
        #expect(header["alg"] == "ES256" && header["typ"] == "synheart-device+jwt")
        #expect(claims["iss"] == "https://auth.example.com" && claims["aud"] == .string(World.appID))
        #expect(claims["sub"] == .string(device.id.text) && claims["app_id"] == .string(World.appID))
        #expect(claims["channel"] == "dev" && claims["platform"] == "ios")
        #expect(claims["assurance"]?.object?["app"] == "development")
        #expect(claims["iat"] == .integer(world.clock.now.seconds))
        #expect(claims["exp"] == .integer(world.clock.now.seconds + 600))
        #expect(claims["client_id"] == .string(World.appID))
        let jwk = claims["cnf"]?.object?["jwk"]?.object
        #expect(claims["cnf"]?.object?["jkt"] == .string(device.publicKey.thumbprint))
        #expect(jwk?["kty"] == "EC" && jwk?["crv"] == "P-256" && jwk?["d"] == nil)
        let point =
            [0x04] + (jwk?["x"]?.string.flatMap { Base64.url.decode($0) } ?? [])
            + (jwk?["y"]?.string.flatMap { Base64.url.decode($0) } ?? [])
        #expect(point == device.publicKey.x963)
        let second = try await world.token(device)
        #expect(try self.claims(second.token, keys).claims["jti"] != claims["jti"])
    }

    @Test(
        "the type of a token is the app's, and its answer names ours",
        arguments: ["synheart-device+jwt", "at+jwt", "JWT"])
    func tokenType(type: String) async throws {
        let world = try await World([
            "signature": ["token_type": .string(type), "token_audiences": ["https://api.example.com"]]
        ])
        let answer = try await world.token(try await world.device(), audience: "https://api.example.com")
        let (header, claims) = try claims(answer.token, try await world.service.signingKeys.keySet())
        #expect(header["typ"] == .string(type) && claims["aud"] == "https://api.example.com")
        #expect(answer.json["token_type"] == "synheart-device+jwt")
    }

    @Test("a type that other issuers use needs audiences of the app's own")
    func tokenTypeWithoutAudiences() throws {
        for type in ["at+jwt", "JWT"] {
            let error = #expect(throws: ContractError.self) {
                try World.record(["signature": ["token_type": .string(type)]])
            }
            #expect(error?.description.contains("token_audiences") == true)
        }
        for type in ["jwt", "synheart-identity+jwt", ""] {
            #expect(throws: (any Error).self) {
                try World.record(["signature": ["token_type": .string(type), "token_audiences": ["a"]]])
            }
        }
    }

    @Test("a verified request has an identity token for the audience that the caller names")
    func identityToken() async throws {
        let world = try await World(
            ["signature": ["token_type": "JWT", "token_audiences": ["https://inner.example.com"]]],
            origin: "https://auth.example.com")
        let device = try await world.device()
        func identity(_ audience: String?) async throws -> VerifiedIdentity? {
            let answer = try await world.verify(try world.signed(device), for: audience)
            guard case .verified(let identity) = answer else { return nil }
            return identity
        }
        let token = try #require(try await identity("https://inner.example.com")?.identityToken)
        let (header, claims) = try claims(token, try await world.service.signingKeys.keySet())
        #expect(header["typ"] == "synheart-identity+jwt" && claims["iss"] == "https://auth.example.com")
        #expect(claims["aud"] == "https://inner.example.com" && claims["sub"] == .string(device.id.text))
        #expect(claims["exp"] == .integer(world.clock.now.seconds + 60))
        #expect(try await identity(nil) != nil)
        #expect(try await identity(nil)?.identityToken == nil)
    }

    @Test(
        "an audience that is not listed is the caller's error: it is no verdict, and takes no claims",
        arguments: ["https://other.example.com", World.appID, "https://inner.example.com/", "cafe\u{301}"])
    func identityForAnotherAudience(audience: String) async throws {
        let world = try await World([
            "mode": "observe", "signature": ["token_audiences": ["https://inner.example.com", "caf\u{e9}"]],
        ])
        let request = try world.signed(try await world.device())
        // In mode `observe`, a refused request gets a verdict. A wrong audience is the caller's error and is thrown.
        try await expect(.invalidRequest) { try await world.verdict(request, for: audience) }
        guard case .verified = try await world.verify(request) else {
            Issue.record("the request was used up")
            return
        }
    }

    @Test("a token that cannot be signed is no verdict either")
    func identityWithoutKeys() async throws {
        let world = try await World(["signature": ["token_audiences": ["https://inner.example.com"]]])
        let device = try await world.device()
        await world.stores.fail(.signingKeys)
        let request = try world.signed(device)
        try await expect(.serviceUnavailable) { try await world.verdict(request, for: "https://inner.example.com") }
    }

    @Test("a request that is only observed has no identity token")
    func observedIdentity() async throws {
        let audience = "https://inner.example.com"
        let world = try await World(["mode": "observe", "signature": ["token_audiences": [.string(audience)]]])
        let request = try world.signed(try await world.device())
        try await world.verify(request, for: audience)
        guard case .observed(.nonceReplay, let identity?) = try await world.verify(request, for: audience) else {
            Issue.record("not observed")
            return
        }
        #expect(identity.identityToken == nil)
    }

    @Test("the key set contains only public keys")
    func keySet() async throws {
        let world = try await World()
        let keys = try await world.service.signingKeys.keySet()["keys"]?.array?.compactMap(\.object) ?? []
        #expect(keys.count == 2)
        #expect(keys.first?.members.map(\.name).sorted() == ["alg", "crv", "kid", "kty", "use", "x", "y"])
        let stored = try #require(try await world.stores.signingKeys().first)
        #expect(stored.sealedKey.count > 32)
    }

    @Test("no kid begins with a hyphen, which commands would take for an option")
    func kids() async throws {
        let world = try await World()
        // One in 64 thumbprints begins with a hyphen, but no key id does.
        for _ in 0..<400 { #expect(try await world.service.signingKeys.rotate(actor: "test").hasPrefix("-") == false) }
    }

    @Test("an audience other than the app and its token_audiences is 400")
    func audience() async throws {
        let world = try await World(["signature": ["token_audiences": ["https://api.example.com"]]])
        let device = try await world.device()
        let keys = try await world.service.signingKeys.keySet()
        for audience in [World.appID, "https://api.example.com"] {
            let token = try await world.token(device, audience: audience)
            #expect(try claims(token.token, keys).claims["aud"] == .string(audience))
        }
        for audience in ["", "com.example.other", "https://api.example.com/"] {
            try await expect(.invalidRequest) { try await world.token(device, audience: audience) }
        }
    }

    @Test("an audience that is another app's id is refused, in a changed and in an added record")
    func audienceOfAnotherApp() async throws {
        let world = try await World()
        try await world.add(World.record(["app_id": "com.example.other"]))
        let audience = try World.record(["signature": ["token_audiences": ["com.example.other"]]])
        let changed = await #expect(throws: ContractError.self) {
            try await world.service.apps.change(audience, actor: "test")
        }
        #expect(changed?.code == .conflict && changed?.description.contains("com.example.other") == true)
        try await world.change(["signature": ["token_audiences": ["com.example.third", .string(World.appID)]]])
        let third = try World.record(["app_id": "com.example.third"])
        let added = await #expect(throws: ContractError.self) {
            try await world.service.apps.add(third, actor: "test")
        }
        #expect(added?.code == .conflict && added?.description.contains(World.appID) == true)
        #expect(try await world.service.apps.record(AppID("com.example.third")) == nil)
        let fourth = try World.record([
            "app_id": "com.example.fourth", "signature": ["token_audiences": [.string(World.appID)]],
        ])
        await #expect(throws: ContractError.self) { try await world.service.apps.add(fourth, actor: "test") }
    }

    @Test("no token names another app as audience, even if that app was added concurrently")
    func audienceThatBecameAnApp() async throws {
        let world = try await World(["signature": ["token_audiences": ["com.example.third"]]])
        let device = try await world.device()
        try await world.token(device, audience: "com.example.third")
        // Two concurrent changes can make the audience the id of an app, because the store does not compare the contents of records.
        let other = try await World()
        try await other.add(World.record(["app_id": "com.example.third"]))
        let third = try #require(try await other.stores.app(AppID("com.example.third")))
        _ = try await world.stores.insert(
            third, recording: AuditEvent(.appAdded, at: world.clock.now, actor: "test"))
        try await expect(.invalidRequest) { try await world.token(device, audience: "com.example.third") }
        try await world.token(device)
    }

    @Test("after a rotation the token names the new key")
    func rotatedKey() async throws {
        let world = try await World()
        let device = try await world.rotated(try await world.device())
        let keys = try await world.service.signingKeys.keySet()
        let claims = try claims(try await world.token(device).token, keys).claims
        let x = claims["cnf"]?.object?["jwk"]?.object?["x"]?.string
        #expect(x == Base64.url.encode(device.publicKey.x963[1..<33]))
    }

    private func kid(_ world: World, _ device: TestDevice) async throws -> String {
        let (header, _) = try claims(
            try await world.token(device).token, try await world.service.signingKeys.keySet())
        return header["kid"]?.string ?? ""
    }

    private func published(_ world: World) async throws -> [String] {
        try await world.service.signingKeys.keySet()["keys"]?.array?.compactMap { $0.object?["kid"]?.string } ?? []
    }

    @Test("one standby key is always published ahead, and signs at once after a rotation")
    func signingKeyRotation() async throws {
        let world = try await World()
        let device = try await world.device()
        let first = try await published(world)
        try #require(first.count == 2)
        #expect(try await kid(world, device) == first[0])
        // The standby key signs only after a rotation, however long it has been published.
        world.clock.advance(100_000)
        #expect(try await kid(world, device) == first[0])
        #expect(try await published(world) == first)
        let standby = try await world.service.signingKeys.rotate(actor: "test")
        #expect(try await published(world) == first + [standby])
        #expect(try await kid(world, device) == first[1])
        #expect(try await world.service.signingKeys.list().map(\.use) == [.retiring, .signing, .standby])
        // The old key signed its last token just now, and is published until that token expires.
        world.clock.advance(660)
        #expect(try await published(world) == first + [standby])
        // Keys are cached for five seconds.
        world.clock.advance(5)
        #expect(try await published(world) == [first[1], standby])
        #expect(try await world.stores.signingKeys().map(\.id) == [first[1], standby])
        #expect(try await kid(world, device) == first[1])
    }

    @Test("a new standby signs only after every cached key set has expired")
    func freshStandby() async throws {
        let world = try await World()
        let device = try await world.device()
        let first = try await published(world)
        let standby = try await world.service.signingKeys.rotate(actor: "test")
        #expect(try await kid(world, device) == first[0])
        world.clock.advance(SigningKeys.cacheLife + 59)
        #expect(try await kid(world, device) == first[0])
        world.clock.advance(1)
        #expect(try await kid(world, device) == first[1])
        world.clock.advance(660)
        #expect(try await published(world) == first + [standby])
        // Keys are cached for five seconds.
        world.clock.advance(5)
        #expect(try await published(world) == [first[1], standby])
    }

    @Test("a revoked signing key leaves the key set at once, and the standby signs at once")
    func revocation() async throws {
        let world = try await World()
        let device = try await world.device()
        let before = try await published(world)
        #expect(try await kid(world, device) == before[0])
        #expect(try await world.service.signingKeys.revoke(before[0], actor: "test"))
        let after = try await published(world)
        #expect(after.count == 2 && after[0] == before[1] && !before.contains(after[1]))
        #expect(try await kid(world, device) == before[1])
        #expect(try await world.audited(.signingKeyRevoked).map { $0.detail["kid"] } == [.string(before[0])])
        // Revoking a revoked key succeeds. An unknown key is not found.
        #expect(try await world.service.signingKeys.revoke(before[0], actor: "test"))
        #expect(try await published(world) == after)
        #expect(try await world.audited(.signingKeyRevoked).count == 1)
        #expect(try await !world.service.signingKeys.revoke("unknown", actor: "test"))
        // A node that reads the keys now gets the same set.
        let node = try world.anotherNode()
        #expect(try await node.signingKeys.keySet() == (try await world.service.signingKeys.keySet()))
    }

    @Test("what was read before a revocation is not cached after it")
    func revocationDuringARead() async throws {
        let world = try await World()
        let keys = SlowKeys(stores: world.stores)
        let stores = world.stores
        let service = AuthService(
            stores: .init(
                challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores, credentials: stores,
                signingKeys: keys), key: try #require(ServiceKey(World.serviceKey)), clock: world.clock)
        _ = try await service.signingKeys.keySet()
        let revoked = try #require(try await service.signingKeys.list().first).id
        world.clock.advance(5)
        keys.afterTheNextRead { _ = try? await service.signingKeys.revoke(revoked, actor: "test") }
        _ = try await service.signingKeys.keySet()
        let after = try await service.signingKeys.keySet()["keys"]?.array?.map { $0.object?["kid"] }
        #expect(after?.count == 2 && after?.contains(.string(revoked)) == false)
    }

    /// Runs an action between a read of the keys and its return.
    private final class SlowKeys: SigningKeyStore {
        private let stores: MemoryStores
        private let action = Locked<(@Sendable () async -> Void)?>(nil)

        init(stores: MemoryStores) { self.stores = stores }

        func afterTheNextRead(_ action: @escaping @Sendable () async -> Void) { self.action.withLock { $0 = action } }

        func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
            let keys = try await stores.signingKeys()
            let action = action.withLock { action in
                defer { action = nil }
                return action
            }
            await action?()
            return keys
        }

        func save(_ change: SigningKeyChange) async throws(StoreError) -> Bool { try await stores.save(change) }

        func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
            try await stores.isRevokedSigningKey(id)
        }
    }

    @Test("a revoked standby is replaced, and the signing key keeps signing")
    func revokedStandby() async throws {
        let world = try await World()
        let device = try await world.device()
        let before = try await published(world)
        #expect(try await world.service.signingKeys.revoke(before[1], actor: "test"))
        let after = try await published(world)
        #expect(after.count == 2 && after[0] == before[0] && after[1] != before[1])
        #expect(try await kid(world, device) == before[0])
    }

    @Test("a revoked retiring key leaves the others as they are")
    func revokedRetiringKey() async throws {
        let world = try await World()
        let device = try await world.device()
        let first = try await published(world)
        world.clock.advance(1000)
        let standby = try await world.service.signingKeys.rotate(actor: "test")
        #expect(try await world.service.signingKeys.revoke(first[0], actor: "test"))
        #expect(try await published(world) == [first[1], standby])
        #expect(try await kid(world, device) == first[1])
    }

    @Test("after a revocation the published standby signs, and no retired key")
    func retiredKeysStayRetired() async throws {
        let world = try await World()
        let device = try await world.device()
        let first = try await published(world)
        world.clock.advance(1000)
        let standby = try await world.service.signingKeys.rotate(actor: "test")
        world.clock.advance(400)
        #expect(try await world.service.signingKeys.revoke(first[1], actor: "test"))
        #expect(try await kid(world, device) == standby)
        #expect(try await published(world).prefix(2) == [first[0], standby])
    }

    @Test("after a revocation the standby signs at once, also if it is a minute old", arguments: [60, 359])
    func freshStandbyAfterARevocation(age: Int64) async throws {
        let world = try await World()
        let device = try await world.device()
        let first = try await published(world)
        world.clock.advance(1000)
        let standby = try await world.service.signingKeys.rotate(actor: "test")
        #expect(try await kid(world, device) == first[1])
        world.clock.advance(age)
        #expect(try await world.service.signingKeys.revoke(first[1], actor: "test"))
        #expect(try await kid(world, device) == standby)
        #expect(try await world.service.signingKeys.list().map(\.use) == [.retiring, .signing, .standby])
        #expect(try await world.anotherNode().signingKeys.list().map(\.use) == [.retiring, .signing, .standby])
        // The retired key stays published while a token that it signed before the rotation may be valid.
        #expect(try await published(world).contains(first[0]))
        world.clock.advance(666)
        #expect(try await !published(world).contains(first[0]))
        #expect(try await kid(world, device) == standby)
    }

    @Test("64 concurrent first tokens create one signing key and one standby")
    func firstKey() async throws {
        let world = try await World()
        let ids = try await withThrowingTaskGroup(of: JSONObject.self) { group in
            for _ in 0..<64 { group.addTask { try await world.service.signingKeys.keySet() } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await world.audited(.signingKeyRotated).count == 2)
    }

    @Test("another node signs with the same keys")
    func otherNode() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        let token = try await node.issueToken(
            TokenRequest(), try await node.authenticate(try world.signed(device, for: .token), for: .token))
        _ = try claims(token.token, try await world.service.signingKeys.keySet())
    }

    @Test("a store that fails is 503")
    func storeFails() async throws {
        let world = try await World()
        let device = try await world.device()
        await world.stores.fail(.signingKeys)
        try await expect(.serviceUnavailable) { try await world.token(device) }
    }
}
