internal import AppAttest
internal import Bytes
internal import Crypto
internal import Foundation
internal import StrictJSON

/// The members of an input line that App Attest's formats use. A missing member is nil. A member that cannot be read throws.
struct AppAttestInput {
    let object: [UInt8]?
    /// Nil without an App ID. Empty for a text that is not an App ID: then no app matches.
    let appIDs: Set<AppleAppID>?
    let keyID: KeyID?
    let clientDataHash: ClientDataHash?
    let environment: AttestEnvironment?
    let validAt: Date?
    let publicKey: P256.Signing.PublicKey?
    let previousCounter: UInt32
    /// Whether the attestation of an assertion's key carried an extension map.
    let attestedExtensions: Bool
    let clientHash: ClientDataHash?
    /// The client data, and the check of the challenge that it must have.
    let challenge: (clientData: [UInt8], check: ChallengeCheck)?

    /// All other members are ignored, whatever their value.
    static let attestation = ["object", "app_id", "key_id", "environment", "valid_at"] + clientData
    static let assertion =
        [
            "object", "app_id", "public_key_x963", "previous_counter", "attested_extensions",
        ] + clientData
    /// The members that only a line of this program may have.
    static let expectedChallenge = ["expected_challenge", "challenge_member"]
    static let receipt = ["object", "app_id", "environment", "valid_at", "client_hash_b64", "public_key_x963"]
    private static let clientData = ["client_data", "client_data_form", "client_data_hash"]

    init(_ line: JSONFields, using names: [String]) throws(JSONError) {
        let used = names.compactMap { name in line.optionalValue(name).map { (name, $0) } }
        let line = try JSONFields(.object(JSONObject(used)))
        // The object and the key id come from a device. A wrong text makes the verdict a refusal, not the line unreadable.
        object = try line.optionalString("object").map { Base64.url.decode(Base64.normalized($0)) ?? [] }
        appIDs = try line.optionalString("app_id").map { text in Set([AppleAppID(text)].compactMap(\.self)) }
        keyID = try line.optionalString("key_id").map {
            KeyID(Base64.url.decode(Base64.normalized($0)) ?? []) ?? Self.idOfNoKey
        }
        clientDataHash = try Self.clientDataHash(line)
        environment = try line.optionalParsed("environment") { word in
            try AttestEnvironment.allCases.first { [$0.rawValue, $0.receiptName].contains(word) }.orThrow()
        }
        validAt = try line.optionalParsed("valid_at") { text in try InputTime.parse(text).orThrow() }
        publicKey = try line.optionalParsed("public_key_x963") { text in
            try P256.Signing.PublicKey(x963Representation: Base64.url.decode(Base64.normalized(text)) ?? [])
        }
        previousCounter = UInt32(
            clamping: try line.optionalInteger("previous_counter", in: 0...Int64(UInt32.max)) ?? 0)
        attestedExtensions = try line.optionalBool("attested_extensions") ?? false
        clientHash = try line.optionalBase64("client_hash_b64").map { ClientDataHash($0) }
        challenge = try Self.challenge(line)
    }

    /// The id of no key, because the hashed text is not a point of the curve.
    private static let idOfNoKey = KeyID(x963: Array("not a key id".utf8))

    private static func clientDataHash(_ line: JSONFields) throws(JSONError) -> ClientDataHash? {
        guard let clientData = try line.optionalBase64("client_data") else {
            return try line.optionalBase64("client_data_hash").map { ClientDataHash($0) }
        }
        // Collections of vectors also use other values. Only `raw` means that the client data is the hash itself.
        let isRaw = try line.optionalString("client_data_form") == "raw"
        return isRaw ? ClientDataHash(clientData) : ClientDataHash(hashing: clientData)
    }
}

extension AppAttestInput {
    /// `expected_challenge` is text. The client data is the same text, or a JSON object that has it as the member `challenge`,
    /// or as the one that `challenge_member` names.
    private static func challenge(
        _ line: JSONFields
    ) throws(JSONError) -> (clientData: [UInt8], check: ChallengeCheck)? {
        guard let expected = try line.optionalString("expected_challenge") else { return nil }
        guard let clientData = try line.optionalBase64("client_data") else {
            throw JSONError(.missing, path: line.pathOf("client_data"))
        }
        let member = try line.optionalString("challenge_member") ?? "challenge"
        let check = ChallengeCheck.clientData(holds: Array(expected.utf8)) { clientData in
            let limits = JSONValue.Limits(bytes: BatchRunner.maximumLineLength)
            guard let object = try? JSONValue(parsing: clientData, limits: limits).object else { return clientData }
            return object[member]?.string.map { Array($0.utf8) }
        }
        return (clientData, check)
    }
}

extension JSONFields {
    fileprivate func optionalBase64(_ name: String) throws(JSONError) -> [UInt8]? {
        try optionalParsed(name) { text in try Base64.url.decode(Base64.normalized(text)).orThrow() }
    }
}

/// Thrown by the parser of a member. `JSONFields` turns it into an error that names the member.
private struct Unreadable: Error {}

extension Optional {
    fileprivate func orThrow() throws -> Wrapped {
        guard let self else { throw Unreadable() }
        return self
    }
}
