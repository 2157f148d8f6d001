import AuthContract
import Crypto
import Foundation
import Testing

extension ProtocolVectors {
    /// The keys of `keys.json` by their names.
    static func keys() throws -> [String: Key] {
        let file: KeyFile = try load("keys")
        return Dictionary(uniqueKeysWithValues: file.keys.map { ($0.name, $0) })
    }

    private struct KeyFile: Decodable { let keys: [Key] }

    struct Key: Decodable {
        let name: String
        let jwk: JWK
        let publicKey: String
        let x963Hex: String
        let thumbprintInput: String
        let thumbprint: String

        /// The private key.
        func signing() throws -> P256.Signing.PrivateKey {
            try P256.Signing.PrivateKey(rawRepresentation: #require(jwk.d.flatMap { Base64.url.decode($0) }))
        }

        /// The public key.
        func verifying() throws -> DevicePublicKey { try DevicePublicKey(base64: publicKey) }
    }

    struct JWK: Decodable {
        let kty: String
        let crv: String
        let x: String
        let y: String
        let d: String?

        /// The public key.
        func verifying() throws -> DevicePublicKey {
            try DevicePublicKey([0x04] + #require(Base64.url.decode(x)) + #require(Base64.url.decode(y)))
        }
    }
}

/// The result of a parser; nil if it refused.
func parsed<Value>(_ parse: () throws -> Value) -> Value? { try? parse() }

/// The error code of a parser's refusal; nil if it accepted.
func code(_ parse: () throws -> some Any) -> String? {
    do {
        _ = try parse()
        return nil
    } catch { return (error as? ContractError)?.code.rawValue ?? "\(error)" }
}
