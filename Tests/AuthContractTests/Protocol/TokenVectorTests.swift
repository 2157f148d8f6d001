import AuthContract
import Foundation
import StrictJSON
import Testing

/// `docs/vectors/tokens.json`: a backend's check of a device token, with the steps of `docs/protocol.md`.
@Suite struct ProtocolTokenVectors {
    struct File: Decodable {
        let jwks: KeySet
        let tokens: [Token]

        struct KeySet: Decodable { let keys: [PublishedKey] }

        struct PublishedKey: Decodable {
            let kty: String
            let crv: String
            let x: String
            let y: String
            let use: String
            let alg: String
            let kid: String
        }
    }

    struct Token: Decodable {
        let name: String
        let token: String
        let issuer: String
        let audience: String
        let now: Int64
        let valid: Bool
    }

    private enum Refused: Error { case form, header, key, signature, claims }

    /// The header and the claims of a token that verifies. Throws for any other token.
    private func verify(_ item: Token, _ keys: File.KeySet) throws -> (header: JSONObject, claims: JSONObject) {
        let parts = item.token.split(separator: ".", omittingEmptySubsequences: false).map { Base64.url.decode($0) }
        guard parts.count == 3, let first = parts[0], let second = parts[1], let third = parts[2],
            let header = try JSONValue(parsing: first).object, let claims = try JSONValue(parsing: second).object
        else { throw Refused.form }
        guard header["alg"] == "ES256", header["typ"] == .string(TokenResponse.type) else { throw Refused.header }
        guard let kid = header["kid"]?.string, let key = keys.keys.first(where: { $0.kid == kid }) else {
            throw Refused.key
        }
        let jwk = ProtocolVectors.JWK(kty: key.kty, crv: key.crv, x: key.x, y: key.y, d: nil)
        let input = item.token.split(separator: ".").prefix(2).joined(separator: ".")
        guard try RequestSignature(raw: third).isValid(for: Array(input.utf8), by: jwk.verifying()) else {
            throw Refused.signature
        }
        guard claims["iss"]?.string == item.issuer, claims["aud"]?.string == item.audience,
            let issued = claims["iat"]?.integer, issued <= item.now, let end = claims["exp"]?.integer, item.now < end,
            end - issued <= 600
        else { throw Refused.claims }
        return (header, claims)
    }

    @Test("each token verifies or not, as the vector says")
    func tokens() throws {
        let file: File = try ProtocolVectors.load("tokens")
        let raw = try JSONValue(parsing: ProtocolVectors.bytes("tokens"), limits: .init(bytes: 1 << 20))
        let expected = (raw.object?["tokens"]?.array ?? []).compactMap(\.object)
        #expect(expected.count == file.tokens.count)
        for (item, expected) in zip(file.tokens, expected) {
            let verified = parsed { try verify(item, file.jwks) }
            #expect((verified != nil) == item.valid, "\(item.name)")
            #expect(verified?.header.sortedMembers == expected["header"]?.object?.sortedMembers, "\(item.name)")
            #expect(verified?.claims.sortedMembers == expected["claims"]?.object?.sortedMembers, "\(item.name)")
        }
    }

    @Test("kid is the key's thumbprint, and cnf has the device's key")
    func keys() throws {
        let file: File = try ProtocolVectors.load("tokens")
        let keys = try ProtocolVectors.keys()
        let published = try #require(file.jwks.keys.first)
        #expect(published.kid == keys["service"]?.thumbprint && published.use == "sig" && published.alg == "ES256")
        #expect(published.x == keys["service"]?.jwk.x && published.y == keys["service"]?.jwk.y)
        let (_, claims) = try verify(try #require(file.tokens.first), file.jwks)
        let confirmed = try #require(claims["cnf"]?.object?["jwk"]?.object)
        #expect(confirmed["x"]?.string == keys["device"]?.jwk.x && confirmed["d"] == nil)
    }
}

extension JSONObject {
    /// The members by name: their order has no meaning.
    fileprivate var sortedMembers: [Member] { members.sorted { $0.name < $1.name } }
}
