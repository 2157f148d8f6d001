import Crypto
import Foundation
import Testing

@testable import AuthContract

/// The test cases of RFC 9421 Appendix B, run on the types that implement our profile of the RFC (scheme 2).
@Suite struct RFC9421Vectors {
    struct File: Decodable {
        struct Case: Decodable, Sendable, CustomTestStringConvertible {
            let id: String
            let title: String
            let alg: String
            let label: String
            let key: String
            let signature_base: String?
            let signature_input: String
            let signature: String
            let message: String
            let expect: String
            var testDescription: String { "\(id) \(title)" }
        }
        struct Key: Decodable {
            let public_pem: String?
        }
        let cases: [Case]
        let keys: [String: Key]
    }

    static let cases = (try? Vectors.load("rfc9421_appendix_b", as: File.self).cases) ?? []

    @Test func `the file has 13 vectors`() { #expect(Self.cases.count == 13) }

    /// The base is built only from the message and its `Signature-Input`. It equals the RFC's base byte for byte.
    @Test(arguments: cases) func `the signature base is the RFC's`(_ vector: File.Case) throws {
        let message = try HTTPMessage(vector.message)
        let base = try message.base(label: vector.label)
        if let expected = vector.signature_base {
            #expect(String(decoding: base.bytes, as: UTF8.self) == expected)
        } else {
            // This is one of the two messages of B.4 whose signature must no longer verify.
            let original = Self.cases.first { $0.id == "b4-transform-0" }?.signature_base
            #expect(String(decoding: base.bytes, as: UTF8.self) != original)
        }
    }

    /// `Signature-Input` is written in the one form that RFC 9651 gives it.
    @Test(arguments: cases) func `Signature-Input is read, and written the same`(_ vector: File.Case) throws {
        let parsed = try StructuredField.Dictionary(
            parsing: "\(vector.label)=\(vector.signature_input)", field: HeaderName.signatureInput)
        guard case .innerList(let list) = parsed[vector.label] else {
            Issue.record("not an inner list")
            return
        }
        #expect(list.text == vector.signature_input)
    }

    @Test(arguments: cases.filter { $0.alg == "ecdsa-p256-sha256" })
    func `the RFC's ECDSA signatures verify`(_ vector: File.Case) throws {
        let message = try HTTPMessage(vector.message)
        let signature = try RequestSignature(raw: message.signature(label: vector.label))
        #expect(Base64.standard.encode(signature.raw) == vector.signature)
        let pem = try #require(Vectors.load("rfc9421_appendix_b", as: File.self).keys[vector.key]?.public_pem)
        let key = DevicePublicKey(try P256.Signing.PublicKey(pemRepresentation: pem))
        let base = try message.base(label: vector.label)
        #expect(signature.isValid(for: base.bytes, by: key) == (vector.expect == "valid"))
        #expect(!signature.isValid(for: base.bytes + [0x0A], by: key))
    }

    @Test(arguments: cases.filter { $0.alg == "ed25519" }) func `the RFC's Ed25519 signatures verify`(
        _ vector: File.Case
    ) throws {
        let message = try HTTPMessage(vector.message)
        let pem = try #require(Vectors.load("rfc9421_appendix_b", as: File.self).keys[vector.key]?.public_pem)
        let der = try [UInt8](base64: pem.split(separator: "\n").dropFirst().dropLast().joined())
        let key = try Curve25519.Signing.PublicKey(rawRepresentation: der.suffix(32))
        let isValid = key.isValidSignature(
            try message.signature(label: vector.label), for: try message.base(label: vector.label).bytes)
        #expect(isValid == (vector.expect == "valid"))
    }

    /// None of these messages fits our profile, and each is refused for that reason.
    @Test(arguments: cases.filter { $0.message.hasPrefix("POST") || $0.message.hasPrefix("GET") })
    func `another profile is unsupported`(_ vector: File.Case) throws {
        let message = try HTTPMessage(vector.message)
        let error = #expect(throws: ContractError.self) { try SignatureHeaders(message.fields) }
        #expect(error?.code == .unsupportedSigVersion)
        // The message is unsupported under our label too.
        let relabelled = HeaderFields(
            message.fields.lines.map {
                ($0.name, $0.value.replacingOccurrences(of: "\(vector.label)=", with: "synheart="))
            })
        let relabelledError = #expect(throws: ContractError.self) { try SignatureHeaders(relabelled) }
        #expect(relabelledError?.code == .unsupportedSigVersion)
    }
}

/// A partial parser of HTTP/1.1 messages in the RFC's notation, for the components that its examples cover.
private struct HTTPMessage {
    struct Unresolved: Error { let component: String }

    let fields: HeaderFields
    private let start: [String]

    init(_ text: String) throws {
        let head = text.components(separatedBy: "\n\n").first ?? ""
        let lines = head.split(separator: "\n").map(String.init)
        start = (lines.first ?? "").split(separator: " ").map(String.init)
        fields = HeaderFields(
            lines.dropFirst().map { line in
                let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
                return (parts[0], parts.count > 1 ? parts[1] : "")
            })
    }

    func base(label: String) throws -> SignatureBase {
        let dictionary = try StructuredField.Dictionary(
            parsing: fields.one(HeaderName.signatureInput), field: HeaderName.signatureInput)
        guard case .innerList(let list) = dictionary[label] else { throw Unresolved(component: label) }
        return try SignatureBase(
            lines: list.items.map { ($0.text, try value(of: $0)) }, parameters: list.text)
    }

    func signature(label: String) throws -> [UInt8] {
        let dictionary = try StructuredField.Dictionary(
            parsing: fields.one(HeaderName.messageSignature), field: HeaderName.messageSignature)
        guard case .item(let item) = dictionary[label], let bytes = item.value.bytes else {
            throw Unresolved(component: label)
        }
        return bytes
    }

    private func value(of component: StructuredField.Item) throws -> String {
        guard let name = component.value.string else { throw Unresolved(component: component.text) }
        let target = start.count > 1 && start[1].hasPrefix("/") ? try RequestTarget(start[1]) : nil
        switch name {
        case "@status": return start[1]
        case "@method": return start[0]
        case "@authority": return try RequestOrigin(scheme: "https", authority: fields.one("Host")).authority
        case "@path": return try #require(target).path.text
        case "@query": return "?" + (target?.query ?? "")
        case "@query-param":
            let wanted = component.parameters.first { $0.key == "name" }?.value.string ?? ""
            let pairs = (target?.query ?? "").split(separator: "&").map { $0.split(separator: "=") }
            return String(try #require(pairs.first { $0.first.map(String.init) == wanted }?.last))
        case _ where name.hasPrefix("@"): throw Unresolved(component: name)
        default: return fields.values(name).joined(separator: ", ")
        }
    }
}
