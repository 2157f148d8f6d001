internal import AppAttest
internal import Crypto
internal import Foundation
internal import StrictJSON

/// The members of an input line that App Attest's formats use; absent ones are nil, and those that cannot be read throw.
struct AppAttestInput {
    let object: [UInt8]?
    /// Nil for no App ID; empty for a text that is none, which no app can have.
    let appIDs: Set<AppID>?
    let keyID: KeyID?
    let clientDataHash: ClientDataHash?
    let environment: AttestEnvironment?
    let validAt: Date?
    let publicKey: P256.Signing.PublicKey?
    let previousCounter: UInt32
    let clientHash: ClientDataHash?

    init(_ line: JSONFields) throws(JSONError) {
        // Object and key id come from a device: text that cannot be theirs is a matter of the verdict, not of the line.
        object = try line.optionalString("object").map { Base64.decode($0) ?? [] }
        appIDs = try line.optionalString("app_id").map { text in Set([AppID(text)].compactMap(\.self)) }
        keyID = try line.optionalString("key_id").map { KeyID(Base64.decode($0) ?? []) ?? Self.idOfNoKey }
        clientDataHash = try Self.clientDataHash(line)
        environment = try line.optionalParsed("environment") { word in
            try AttestEnvironment.allCases.first { [$0.rawValue, $0.receiptName].contains(word) }.orThrow()
        }
        validAt = try line.optionalParsed("valid_at") { text in try InputTime.parse(text).orThrow() }
        publicKey = try line.optionalParsed("public_key_x963") { text in
            try P256.Signing.PublicKey(x963Representation: Base64.decode(text) ?? [])
        }
        previousCounter = UInt32(
            clamping: try line.optionalInteger("previous_counter", in: 0...Int64(UInt32.max)) ?? 0)
        clientHash = try line.optionalBase64("client_hash_b64").map { ClientDataHash($0) }
    }

    /// Equal to the id of no key: what is hashed is no point.
    private static let idOfNoKey = KeyID(x963: Array("not a key id".utf8))

    private static func clientDataHash(_ line: JSONFields) throws(JSONError) -> ClientDataHash? {
        guard let clientData = try line.optionalBase64("client_data") else {
            return try line.optionalBase64("client_data_hash").map { ClientDataHash($0) }
        }
        // How client data was used says nothing where there is only its hash.
        let form: ClientDataForm = try line.optionalChoice("client_data_form") ?? .sha256
        switch form {
        case .sha256: return ClientDataHash(hashing: clientData)
        case .raw: return ClientDataHash(clientData)
        }
    }

    private enum ClientDataForm: String {
        case sha256, raw
    }
}

extension JSONFields {
    fileprivate func optionalBase64(_ name: String) throws(JSONError) -> [UInt8]? {
        try optionalParsed(name) { text in try Base64.decode(text).orThrow() }
    }
}

/// What a member's own parser throws; `JSONFields` turns it into an error that names the member.
private struct Unreadable: Error {}

extension Optional {
    fileprivate func orThrow() throws -> Wrapped {
        guard let self else { throw Unreadable() }
        return self
    }
}
