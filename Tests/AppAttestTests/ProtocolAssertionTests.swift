import AppAttest
import Bytes
import Crypto
import Foundation
import Testing

/// The assertions of `docs/vectors/assertions.json`, which every verifier of the protocol runs.
@Suite struct ProtocolAssertions {
    private struct File: Decodable {
        let attestedKey: String
        let iosAppIds: [String]
        let requests: [Request]

        struct Request: Decodable {
            let name: String
            let previousCounter: UInt32
            let request: Asked
            let clientDataHashHex: String
            let authenticatorDataHex: String?
            let valid: Bool
            let counter: UInt32?

            struct Asked: Decodable { let headers: [[String]] }

            /// The assertion. Nil if the request does not have exactly one, in base64: another layer refuses such a request.
            var object: [UInt8]? {
                let values = request.headers.filter { $0.first == "X-Synheart-Assertion" }.compactMap(\.last)
                return values.count == 1 ? Base64.standard.decode(values[0]) : nil
            }
        }
    }

    private struct Keys: Decodable {
        let keys: [Key]

        struct Key: Decodable {
            let name: String
            let x963Hex: String
        }
    }

    private static func load<Value: Decodable>(_ name: String) throws -> Value {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(
            Value.self, from: Data(contentsOf: root.appendingPathComponent("docs/vectors/\(name).json")))
    }

    @Test func `an assertion over a signed request is accepted or refused as its vector says`() throws {
        let file: File = try Self.load("assertions")
        let keys: Keys = try Self.load("keys")
        let attested = try #require(keys.keys.first { $0.name == file.attestedKey })
        let point = try #require(Hexadecimal.decode(attested.x963Hex))
        let key = try P256.Signing.PublicKey(x963Representation: point)
        let apps = Set(file.iosAppIds.compactMap(AppleAppID.init))
        let verifier = AssertionVerifier(policy: AppAttestPolicy(appIDs: apps))
        let asked = file.requests.filter { $0.object != nil }
        #expect(asked.contains { $0.valid } && asked.contains { !$0.valid })
        for item in asked {
            let hash = ClientDataHash(try #require(Hexadecimal.decode(item.clientDataHashHex)))
            let assertion = try? verifier.verify(
                AssertionObject(parsing: #require(item.object)), clientDataHash: hash, publicKey: key,
                attestedExtensions: false, previousCounter: item.previousCounter)
            #expect((assertion != nil) == item.valid, "\(item.name)")
            if item.valid { #expect(assertion?.counter == item.counter, "\(item.name)") }
        }
    }
}
