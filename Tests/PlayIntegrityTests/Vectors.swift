import Crypto
import Foundation
import StrictJSON
import Testing

@testable import PlayIntegrity

enum Vectors {
    static func bytes(_ path: String) throws -> [UInt8] {
        let folder = try #require(Bundle.module.url(forResource: "Vectors", withExtension: nil))
        return Array(try Data(contentsOf: folder.appendingPathComponent(path)))
    }

    static func json(_ path: String) throws -> JSONFields {
        try JSONFields(JSONValue(parsing: bytes(path), limits: .init(bytes: 4 * 1024 * 1024)))
    }

    static func keys() throws -> ResponseKeys { try ResponseKeys(json("keys.json")) }

    static func policy(_ override: JSONFields? = nil) throws -> PlayIntegrityPolicy {
        let policy = try PlayIntegrityPolicy(certificateDigests: nil).applying(json("policy.json"))
        return try override.map { try policy.applying($0) } ?? policy
    }

    static let tokens: [String: TokenVector] = {
        guard let lines = try? bytes("tokens.jsonl").split(separator: UInt8(ascii: "\n")) else { return [:] }
        let vectors = lines.compactMap { line in (try? JSONValue(parsing: line)).flatMap { try? TokenVector($0) } }
        return Dictionary(vectors.map { ($0.name, $0) }) { first, _ in first }
    }()

    static func token(_ name: String) throws -> TokenVector { try #require(tokens[name]) }
}

/// One line of `tokens.jsonl`.
struct TokenVector: Sendable {
    let name: String
    let token: String
    let package: String
    let nonce: String
    let time: Date
    let policy: JSONFields?
    let result: String
    let reason: String?

    init(_ json: JSONValue) throws {
        let fields = try JSONFields(json)
        name = try fields.string("name")
        token = try fields.string("token")
        package = try fields.string("package")
        nonce = try fields.string("nonce")
        time = try fields.parsed("evaluate_at") { try Date($0, strategy: .iso8601) }
        policy = try fields.optionalObject("policy")
        let outcome = try fields.object("expected_outcome")
        result = try outcome.string("result")
        reason = try outcome.optionalString("reason")
    }

    func verify(with keys: [ResponseKeys]) throws -> VerifiedIntegrity {
        switch try IntegrityToken(token).decode(with: keys) {
        case .decoded(let verdict):
            return try PlayIntegrityVerifier(policy: Vectors.policy(policy), packages: [package])
                .verify(verdict, binding: .nonce(nonce), at: time)
        case .refused(let error): throw error
        case .couldNotCheck(let error): throw error
        }
    }
}

func refusal(_ body: () throws -> Void) -> PlayIntegrityError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? PlayIntegrityError)?.code
    }
}

func octets(_ hexadecimal: String) -> [UInt8] {
    var octets: [UInt8] = []
    var rest = hexadecimal[...]
    while let octet = UInt8(rest.prefix(2), radix: 16) {
        octets.append(octet)
        rest = rest.dropFirst(2)
    }
    return octets
}
