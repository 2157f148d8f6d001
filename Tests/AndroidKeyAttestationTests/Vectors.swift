import Bytes
import Foundation
import StrictJSON
import Testing

@testable import AndroidKeyAttestation

enum Vectors {
    static func bytes(_ path: String) throws -> [UInt8] {
        let folder = try #require(Bundle.module.url(forResource: "Vectors", withExtension: nil))
        return Array(try Data(contentsOf: folder.appendingPathComponent(path)))
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

    static func json(_ path: String) throws -> JSONValue {
        try JSONValue(parsing: bytes(path), limits: .init(bytes: 4 * 1024 * 1024))
    }

    /// Chains by name.
    static let chains: [String: Vector] = {
        guard let lines = try? bytes("key-attestation.jsonl").split(separator: UInt8(ascii: "\n")) else { return [:] }
        let vectors = lines.compactMap { line in
            (try? JSONValue(parsing: line, limits: .init(bytes: 1024 * 1024))).flatMap { try? Vector($0) }
        }
        return Dictionary(vectors.map { ($0.name, $0) }) { first, _ in first }
    }()

    static let names = chains.keys.sorted()

    static func chain(_ name: String) throws -> Vector { try #require(chains[name]) }
}

/// One line of `key-attestation.jsonl`.
struct Vector: Sendable {
    let name: String
    let pem: String
    let expected: JSONValue
    let isAccepted: Bool
    let reasons: [String]
    let provisioning: String
    let rootLabel: String
    let quirks: [String]

    init(_ json: JSONValue) throws {
        let fields = try JSONFields(json)
        name = try fields.string("name")
        pem = try fields.string("chain_pem")
        expected = try fields.value("expected")
        provisioning = try fields.string("provisioning")
        rootLabel = try fields.object("root").string("label")
        quirks = try fields.optionalStrings("quirks") ?? []
        let outcome = try fields.object("expected_outcome")
        isAccepted = try outcome.string("result") == "accept"
        reasons = try outcome.optionalStrings("reasons") ?? []
    }

    func chain() throws -> KeyAttestationChain { try KeyAttestationChain(pem: pem) }

    func encodings() throws -> [[UInt8]] { try #require(PEM.blocks(in: pem, label: "CERTIFICATE")) }
}

extension KeyAttestationVerifier {
    /// A verifier with the status list of January 2025 and, by default, the policy that `policy_default.json` describes.
    static func audit(_ policy: KeyAttestationPolicy = .audit) throws -> KeyAttestationVerifier {
        KeyAttestationVerifier(
            policy: policy,
            statusList: try RevocationStatusList(parsing: Vectors.bytes("status/status-snapshot-2025-01.json")))
    }
}

func refusal(_ body: () throws -> Void) -> KeyAttestationError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? KeyAttestationError)?.code
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

extension KeyAttestationVerifier {
    /// The findings of an audit that expects nothing but the time. Throws the audit's refusal.
    func findings(of chain: KeyAttestationChain, at date: Date?) throws -> KeyAttestationAudit.Findings {
        var expected = KeyAttestationExpectations()
        expected.date = date
        let audit = audit(chain, against: expected)
        if let refusal = audit.refusal { throw refusal }
        return try #require(audit.findings)
    }
}
