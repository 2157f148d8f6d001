import AppAttest
import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing

/// One real object, and what is known about it.
struct Vector: Sendable, CustomTestStringConvertible {
    let fields: JSONFields

    static let all: [Vector] = {
        guard
            let url = Bundle.module.url(forResource: "vectors", withExtension: "jsonl", subdirectory: "Vectors"),
            let data = try? Data(contentsOf: url)
        else { return [] }
        return data.split(separator: UInt8(ascii: "\n")).compactMap { line in
            (try? JSONFields(JSONValue(parsing: line))).map(Vector.init)
        }
    }()

    static func kind(_ kind: String, _ expected: String? = nil) -> [Vector] {
        all.filter { $0.kind == kind && (expected == nil || $0.expected.hasPrefix(expected ?? "")) }
    }

    subscript(name: String) -> String? { try? fields.optionalString(name) }

    var testDescription: String { self["name"] ?? "" }
    var kind: String { self["kind"] ?? "" }
    var expected: String { self["expected"] ?? "" }
    /// The object. For a receipt, without the bytes that follow it.
    var object: [UInt8] {
        let bytes = bytes("object") ?? []
        return kind == "receipt" ? Receipt.prefix(of: bytes) : bytes
    }
    var appID: AppleAppID? { self["app_id"].flatMap(AppleAppID.init) }
    var keyID: KeyID? { self["key_id"].flatMap(KeyID.init(base64:)) }
    var environment: AttestEnvironment? {
        AttestEnvironment.allCases.first { [$0.rawValue, $0.receiptName].contains(self["environment"]) }
    }
    var clientDataHash: ClientDataHash? {
        if let clientData = bytes("client_data") {
            return self["client_data_form"] == "raw" ? ClientDataHash(clientData) : ClientDataHash(hashing: clientData)
        }
        return bytes("client_data_hash").map { ClientDataHash($0) }
    }
    var publicKey: P256.Signing.PublicKey? {
        bytes("public_key_x963").flatMap { try? P256.Signing.PublicKey(x963Representation: $0) }
    }
    var counter: UInt32 { UInt32((try? fields.optionalInteger("counter")) ?? 0) }

    func bytes(_ name: String) -> [UInt8]? { self[name].flatMap { Data(base64Encoded: $0) }.map { Array($0) } }
    func date(_ name: String) -> Date? { self[name].flatMap(RFC3339.date) }

    /// A policy that accepts this vector.
    func policy() throws -> AppAttestPolicy {
        AppAttestPolicy(appIDs: [try #require(appID)], environments: Set(AttestEnvironment.allCases))
    }

    func receiptExpectations() throws -> ReceiptExpectations {
        ReceiptExpectations(
            appIDs: [try #require(appID)], keyID: try #require(keyID),
            clientDataHash: ClientDataHash(try #require(bytes("client_hash_b64"))),
            environment: try #require(environment))
    }
}

/// The code with which `body` refuses; nil if it does not refuse. Checks that the documentation lists the code for the
/// step that refused.
func code(_ body: () throws -> some Any) -> AppAttestError.Code? {
    do {
        _ = try body()
        return nil
    } catch let error as AppAttestError {
        let documented = documentedCodes[error.step.rawValue] ?? []
        #expect(documented.contains(error.code.rawValue), "\(error) is not in WhatEachCheckProtects.md")
        return error.code
    } catch {
        Issue.record(error)
        return nil
    }
}

/// The codes of each step, from the tables of the article *What each check protects*.
let documentedCodes: [String: Set<String>] = {
    let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/AppAttest/AppAttest.docc/WhatEachCheckProtects.md")
    var codes: [String: Set<String>] = [:]
    for line in ((try? String(contentsOf: article, encoding: .utf8)) ?? "").split(separator: "\n") {
        let columns = line.split(separator: "|").map { $0.split(separator: "`", omittingEmptySubsequences: false) }
        guard columns.count == 4, columns[0].count == 3, let last = columns.last else { continue }
        let quoted = last.indices.filter { $0 % 2 == 1 }.map { String(last[$0]) }
        codes[String(columns[0][1]), default: []].formUnion(quoted)
    }
    return codes
}()
