import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing

@testable import PlayIntegrity

/// Project Wycheproof's vectors, through the same code that parses tokens.
@Suite("Wycheproof")
struct WycheproofTests {
    /// Puts each wrapped key into an otherwise valid token. Only a 256-bit key that a 256-bit key wrapped is accepted.
    @Test("AES key wrap: only a 256-bit key that this 256-bit key wrapped is accepted")
    func keyWrap() throws {
        var unwrapped = 0
        var refused = 0
        for group in try #require(try Vectors.json("aes_wrap_test.json").optionalArray("testGroups")).map({
            try JSONFields($0)
        })
        where try group.integer("keySize") == 256 {
            for test in try #require(try group.optionalArray("tests")).map({ try JSONFields($0) }) {
                let id = try test.integer("tcId")
                let key = SymmetricKey(data: octets(try test.string("key")))
                let contentKey = octets(try test.string("msg"))
                let token = try Self.token(wrappedKey: octets(test.string("ct")), contentKey: contentKey)
                let isExpected = try test.string("result") == "valid" && contentKey.count == 32
                let opened = try? CompactJWE(token).decrypt(with: key)
                #expect((opened == Array("content".utf8)) == isExpected, "test \(id)")
                if isExpected { unwrapped += 1 } else { refused += 1 }
            }
        }
        #expect(unwrapped > 0 && refused > 40, "\(unwrapped) and \(refused)")
    }

    private static func token(wrappedKey: [UInt8], contentKey: [UInt8]) throws -> String {
        let header = Base64.url.encode(Array(#"{"alg":"A256KW","enc":"A256GCM"}"#.utf8))
        let key = SymmetricKey(data: contentKey.count == 32 ? contentKey : Array(repeating: 0, count: 32))
        let box = try AES.GCM.seal(Array("content".utf8), using: key, authenticating: Array(header.utf8))
        let parts = [wrappedKey, Array(box.nonce), Array(box.ciphertext), Array(box.tag)]
        return ([header] + parts.map { Base64.url.encode($0) }).joined(separator: ".")
    }

    /// Google uses only one kind of the suite's tokens: compact, A256KW with A256GCM. The other kinds must be refused here.
    @Test("JWE: of all algorithms only A256KW with A256GCM is opened")
    func encryption() throws {
        var opened = 0
        var refused = 0
        for group in try #require(try Vectors.json("json_web_encryption_test.json").optionalArray("testGroups"))
            .map({ try JSONFields($0) })
        {
            let secret = try group.object("private").optionalString("k").flatMap(Base64.decodeLenient)
            let key = SymmetricKey(data: secret ?? Array(repeating: 0, count: 32))
            for test in try #require(try group.optionalArray("tests")).map({ try JSONFields($0) }) {
                let id = try test.integer("tcId")
                guard let token = try test.optionalString("jwe") else { continue }
                let plaintext = (try? CompactJWE(token)).flatMap { try? $0.decrypt(with: key) }
                let isOurs =
                    try test.string("result") == "valid" && test.optionalString("enc") == "A256GCM"
                    && group.object("private").optionalString("alg") == "A256KW"
                let expected = isOurs ? octets(try test.string("pt")) : nil
                #expect(plaintext == expected, "test \(id)")
                if plaintext == nil { refused += 1 } else { opened += 1 }
            }
        }
        #expect(opened == 1 && refused > 120, "\(opened) and \(refused)")
    }

    /// A group with a P-256 key is tried with that key. The tokens of every other group are tried with a new P-256 key.
    @Test("JWS: of all algorithms only ES256 is verified")
    func signature() throws {
        var verified = 0
        var refused = 0
        for group in try #require(try Vectors.json("json_web_signature_test.json").optionalArray("testGroups"))
            .map({ try JSONFields($0) })
        {
            // A group of symmetric keys has no public key.
            let jwk = try group.optionalObject("public") ?? group.object("private")
            let isES256 = try jwk.optionalString("crv") == "P-256"
            let key = isES256 ? try Self.key(jwk) : P256.Signing.PrivateKey().publicKey
            for test in try #require(try group.optionalArray("tests")).map({ try JSONFields($0) }) {
                let id = try test.integer("tcId")
                guard let token = try test.optionalString("jws") else { continue }
                let payload = (try? CompactJWS(Array(token.utf8))).flatMap { try? $0.verifiedPayload(key) }
                // The code does not check whether a JWK reserves its key for another use: Play Console's keys are not JWKs.
                let isKeyReserved = try group.optionalString("comment") == "ec_key_for_encryption"
                let isValid = try test.string("result") == "valid"
                if !isKeyReserved { #expect((payload != nil) == (isES256 && isValid), "test \(id)") }
                if payload == nil { refused += 1 } else { verified += 1 }
            }
        }
        #expect(verified >= 2 && refused > 300, "\(verified) and \(refused)")
    }

    private static func key(_ jwk: JSONFields) throws -> P256.Signing.PublicKey {
        let coordinates = try ["x", "y"].map { try #require(try Base64.url.decode(jwk.string($0))) }
        return try P256.Signing.PublicKey(rawRepresentation: coordinates.flatMap(\.self))
    }
}
