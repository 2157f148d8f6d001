import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Device tokens")
struct TokenTests {
    /// What any backend does with a token: finds the key in the set, verifies, reads the claims.
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

    @Test("A token says who, for whom, until when, and verifies with the published key")
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
        let jwk = claims["cnf"]?.object?["jwk"]?.object
        #expect(jwk?["kty"] == "EC" && jwk?["crv"] == "P-256" && jwk?["d"] == nil)
        let point =
            [0x04] + (jwk?["x"]?.string.flatMap { Base64.url.decode($0) } ?? [])
            + (jwk?["y"]?.string.flatMap { Base64.url.decode($0) } ?? [])
        #expect(point == device.publicKey.x963)
        let second = try await world.token(device)
        #expect(try self.claims(second.token, keys).claims["jti"] != claims["jti"])
    }

    @Test("The key set has public halves alone")
    func keySet() async throws {
        let world = try await World()
        let keys = try await world.service.signingKeys.keySet()["keys"]?.array?.compactMap(\.object) ?? []
        #expect(keys.count == 1)
        #expect(keys.first?.members.map(\.name).sorted() == ["alg", "crv", "kid", "kty", "use", "x", "y"])
        let stored = try #require(try await world.stores.signingKeys().first)
        #expect(stored.sealedKey.count > 32)
    }

    @Test("The audience is the app, or one of its token_audiences; any other is 400")
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

    @Test("After a rotation the token names the new key")
    func rotatedKey() async throws {
        let world = try await World()
        let device = try await world.rotated(try await world.device())
        let keys = try await world.service.signingKeys.keySet()
        let claims = try claims(try await world.token(device).token, keys).claims
        let x = claims["cnf"]?.object?["jwk"]?.object?["x"]?.string
        #expect(x == Base64.url.encode(device.publicKey.x963[1..<33]))
    }

    @Test(
        "A new signing key is published before its first use for longer than the set may be cached; an old one until its last token has expired"
    )
    func signingKeyRotation() async throws {
        let world = try await World()
        let device = try await world.device()
        func kid() async throws -> String {
            let (header, _) = try claims(
                try await world.token(device).token, try await world.service.signingKeys.keySet())
            return header["kid"]?.string ?? ""
        }
        func published() async throws -> [String] {
            try await world.service.signingKeys.keySet()["keys"]?.array?.compactMap { $0.object?["kid"]?.string } ?? []
        }
        let old = try await kid()
        world.clock.advance(1000)
        let new = try await world.service.signingKeys.rotate(actor: "test")
        #expect(try await published() == [old, new])
        #expect(try await kid() == old)
        world.clock.advance(SigningKeys.cacheLife)
        #expect(try await kid() == old)
        world.clock.advance(60)
        #expect(try await kid() == new)
        // The old key's last token was issued just now; it is published for its whole life.
        world.clock.advance(600)
        #expect(try await published() == [old, new])
        world.clock.advance(61)
        #expect(try await published() == [new])
        #expect(try await world.stores.signingKeys().map(\.id) == [new])
        #expect(try await kid() == new)
    }

    @Test("64 first tokens at once make one signing key")
    func firstKey() async throws {
        let world = try await World()
        let ids = try await withThrowingTaskGroup(of: JSONObject.self) { group in
            for _ in 0..<64 { group.addTask { try await world.service.signingKeys.keySet() } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await world.audited(.signingKeyRotated).count == 1)
    }

    @Test("Another node signs with the same keys")
    func otherNode() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        let token = try await node.issueToken(
            TokenRequest(), try await node.authenticate(try world.signed(device, for: .token), for: .token))
        _ = try claims(token.token, try await world.service.signingKeys.keySet())
    }

    @Test("A store that fails is 503")
    func storeFails() async throws {
        let world = try await World()
        let device = try await world.device()
        await world.stores.fail(.signingKeys)
        try await expect(.serviceUnavailable) { try await world.token(device) }
    }
}
