internal import AndroidKeyAttestation
internal import AppAttest
internal import Foundation
internal import PlayIntegrity
package import StrictJSON
package import Verification

extension EvidenceFormat {
    /// The contents of an object, as JSON; nil if the object has another format.
    package func inspect(_ object: [UInt8]) -> JSONValue? {
        switch self {
        case .attestation: (try? AttestationObject(parsing: object)).map { .object($0.json) }
        case .assertion: (try? AssertionObject(parsing: object)).map { .object($0.json) }
        case .receipt: (try? Receipt(parsing: Receipt.prefix(of: object))).map { .object($0.json) }
        case .keyAttestation: Self.inspect(chain: object)
        case .playIntegrity: Self.inspect(token: object)
        }
    }

    /// The receipt in an attestation object, unchanged; nil if the bytes are not an attestation object.
    package static func receipt(inAttestation object: [UInt8]) -> [UInt8]? {
        try? AttestationObject(parsing: object).receipt
    }

    private static func inspect(chain object: [UInt8]) -> JSONValue? {
        let text = String(decoding: object, as: UTF8.self)
        let chain = (try? KeyAttestationChain(pem: text)) ?? (try? KeyAttestationChain(der: [object]))
        guard let chain, chain.hasKeyDescription else { return nil }
        return .object(KeyAttestationFacts.facts(chain))
    }

    private static func inspect(token object: [UInt8]) -> JSONValue? {
        let text = String(decoding: object, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        if let payload = try? JSONValue(parsing: object).object { return Self.inspect(payload: payload) }
        guard let token = try? IntegrityToken(text) else { return nil }
        // Any base64 text looks like an opaque token. Accept only long texts that begin like Google's tokens: with `C`, the base64
        // of the tag of a protocol buffer's first field.
        if case .opaque = token, !text.hasPrefix("C") || text.utf8.count < 100 { return nil }
        return .object(JSONObject([("token_form", .string(PlayIntegrityFacts.form(token)))]))
    }

    /// The contents of a verdict that was decoded elsewhere, with or without the wrapper of Google's response; nil if the payload
    /// is not a verdict.
    private static func inspect(payload: JSONObject) -> JSONValue? {
        let wrapped = payload["tokenPayloadExternal"] ?? .object(payload)
        guard wrapped.object?["requestDetails"] != nil,
            case .decoded(let verdict) = DecodeOutcome.googleAnswer(
                status: 200, body: JSONValue.object(JSONObject([("tokenPayloadExternal", wrapped)])).bytes)
        else { return nil }
        var facts = JSONObject()
        PlayIntegrityFacts.add(verdict, to: &facts)
        return .object(facts)
    }
}
