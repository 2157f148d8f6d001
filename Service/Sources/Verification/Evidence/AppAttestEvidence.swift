package import AppAttest
internal import Bytes
internal import Crypto
package import Foundation
package import StrictJSON

/// An App Attest object with its expected values, as an input line of a batch names them. A nil value is not compared.
package struct AppAttestEvidence: Sendable {
    /// One of the three formats of App Attest.
    package let format: EvidenceFormat
    /// The object; nil if the input line has none.
    package let object: [UInt8]?
    /// The expected values. If the line's App ID is malformed, the set of expected App IDs is empty, so no object matches.
    package var expected = AppAttestExpectations()
    /// Whether the object contains only the receipt. In published collections of test vectors, other bytes of the
    /// attestation may follow the receipt.
    package var isWholeReceipt = false
    /// The policy in the input line.
    private(set) var ownPolicy: JSONValue?

    /// An object without expected values.
    package init(_ format: EvidenceFormat, _ object: [UInt8], at date: Date? = nil) {
        self.format = format
        self.object = object
        expected.date = date
    }

    /// The receipt: the object, without trailing bytes.
    package var receipt: [UInt8]? { isWholeReceipt ? object : object.map { Receipt.prefix(of: $0) } }

    /// The number of bytes after the receipt; nil if there are none.
    package var trailingBytes: Int? {
        guard let object, let receipt, receipt.count < object.count else { return nil }
        return object.count - receipt.count
    }
}

// MARK: Lines

extension AppAttestEvidence {
    /// The members of an input line that each format uses. All others are ignored, whatever their value.
    private static func members(_ format: EvidenceFormat, isTrusted: Bool) -> [String] {
        let clientData = ["client_data", "client_data_form", "client_data_hash"]
        switch format {
        case .receipt:
            return [
                "object", "app_id", "environment", "valid_at", "client_hash_b64", "public_key_x963", "whole_object",
            ]
        case .assertion:
            let ours = isTrusted ? ["expected_challenge", "challenge_member"] : []
            return [
                "object", "app_id", "public_key_x963", "previous_counter", "attested_extensions",
            ] + clientData + ours
        default: return ["object", "app_id", "key_id", "environment", "valid_at"] + clientData
        }
    }

    /// Reads an input line. A missing member is nil. A member that cannot be read throws, but a malformed text of `object`,
    /// `key_id` or `app_id` is read as a value that no check accepts.
    ///
    /// - Parameters:
    ///   - line: the line.
    ///   - format: one of the three formats of App Attest.
    ///   - isTrusted: whether the line may name the challenge that is expected.
    package init(_ line: JSONFields, as format: EvidenceFormat, isTrusted: Bool) throws(JSONError) {
        self.format = format
        ownPolicy = line.ownPolicy
        let names = Self.members(format, isTrusted: isTrusted)
        let line = try JSONFields(
            .object(JSONObject(names.compactMap { name in line.optionalValue(name).map { (name, $0) } })))
        // The object and the key id come from a device. If their text is malformed, the object is refused, and the line stays
        // readable.
        object = try line.optionalString("object").map { Base64.decodeEitherForm($0) ?? [] }
        expected.appIDs = try line.optionalString("app_id").map { text in Set([AppleAppID(text)].compactMap(\.self)) }
        expected.keyID = try line.optionalString("key_id").map {
            KeyID(Base64.decodeEitherForm($0) ?? []) ?? Self.idOfNoKey
        }
        expected.clientDataHash = try Self.clientDataHash(line)
        expected.environments = try line.optionalParsed("environment") { word in
            [try AttestEnvironment.allCases.first { [$0.rawValue, $0.receiptName].contains(word) }.orThrow()]
        }
        expected.date = try line.optionalTime("valid_at")
        expected.publicKey = try line.optionalParsed("public_key_x963") { text in
            try P256.Signing.PublicKey(x963Representation: Base64.decodeEitherForm(text) ?? [])
        }
        expected.previousCounter = UInt32(
            clamping: try line.optionalInteger("previous_counter", in: 0...Int64(UInt32.max)) ?? 0)
        expected.attestedExtensions = try line.optionalBool("attested_extensions") ?? false
        isWholeReceipt = try line.optionalBool("whole_object") ?? false
        expected.challenge = try Self.challenge(line)
    }

    /// An id that no key has, because the hashed text is not a point of the curve.
    private static let idOfNoKey = KeyID(x963: Array("not a key id".utf8))

    private static func clientDataHash(_ line: JSONFields) throws(JSONError) -> ClientDataHash? {
        guard let clientData = try line.optionalBase64("client_data") else {
            // A line has one of these two members, depending on its format.
            let attested = try line.optionalBase64("client_data_hash")
            let inReceipt = try line.optionalBase64("client_hash_b64")
            return (attested ?? inReceipt).map { ClientDataHash($0) }
        }
        // If the value is `raw`, the client data is the hash itself. Collections of vectors also use other values, which mean
        // that the client data is hashed.
        let isRaw = try line.optionalString("client_data_form") == "raw"
        return isRaw ? ClientDataHash(clientData) : ClientDataHash(hashing: clientData)
    }

    /// The client data of an input line, and the check that it contains the text of `expected_challenge`. The client data
    /// is this text, or a JSON object that has the text in the member `challenge`, or in the member that
    /// `challenge_member` names.
    private static func challenge(
        _ line: JSONFields
    ) throws(JSONError) -> (clientData: [UInt8], check: ChallengeCheck)? {
        guard let expected = try line.optionalString("expected_challenge") else { return nil }
        guard let clientData = try line.optionalBase64("client_data") else {
            throw JSONError(.missing, path: line.pathOf("client_data"))
        }
        let member = try line.optionalString("challenge_member") ?? "challenge"
        let check = ChallengeCheck.clientData(holds: Array(expected.utf8)) { clientData in
            let limits = JSONValue.Limits(bytes: 1 << 20)
            guard let object = try? JSONValue(parsing: clientData, limits: limits).object else { return clientData }
            return object[member]?.string.map { Array($0.utf8) }
        }
        return (clientData, check)
    }

    /// This evidence as an input line. Made for an object that the service judged.
    package var line: JSONObject {
        var line = JSONObject(format)
        line.set("object", base64: object)
        line["whole_object"] = isWholeReceipt ? true : nil
        line["app_id"] = expected.appIDs?.first.map { .string($0.text) }
        line.set("public_key_x963", base64: expected.publicKey?.x963Representation)
        line.set(format == .receipt ? "client_hash_b64" : "client_data_hash", base64: expected.clientDataHash?.bytes)
        line["environment"] = expected.environments?.first.map { .string($0.rawValue) }
        if format == .assertion {
            line["attested_extensions"] = .bool(expected.attestedExtensions)
            line["previous_counter"] = .integer(expected.previousCounter)
        }
        line.set(format.timeMember, expected.date)
        return line
    }
}

// MARK: Audits

extension AppAttestEvidence {
    /// Runs the steps of the verification of an attestation object.
    package func auditAttestation(
        under options: VerificationOptions
    ) throws -> AppAttestAudit<AttestationObject> {
        let (object, asked, expected) = try prepare(options)
        var verifier = try NothingVerified.unlessReadable("roots") { try options.appleVerifiers().attestations }
        verifier.policy = asked.policy
        return verifier.audit(object, against: expected)
    }

    /// Runs the steps of the verification of an assertion.
    package func auditAssertion(under options: VerificationOptions) throws -> AppAttestAudit<AssertionObject> {
        let (object, asked, expected) = try prepare(options)
        return AssertionVerifier(policy: asked.policy).audit(object, against: expected)
    }

    /// Runs the steps of the verification of a receipt. The certificate chain is judged at the time of the receipt's
    /// creation. The receipt's age is judged at the time of the check.
    package func auditReceipt(under options: VerificationOptions) throws -> AppAttestAudit<Receipt> {
        let prepared = try prepare(options)
        var expected = prepared.expected
        var verifier = try NothingVerified.unlessReadable("roots") { try options.appleVerifiers().receipts }
        verifier.policy = prepared.asked.receiptPolicy
        expected.keyID = expected.publicKey.map { KeyID(of: $0) }
        return verifier.audit(receipt ?? prepared.object, against: expected)
    }

    /// The object, the policy that applies to the line, and the expected values. The policy gives the expected App IDs and environments.
    private func prepare(
        _ options: VerificationOptions
    ) throws(NothingVerified) -> (object: [UInt8], asked: AppAttestOptions, expected: AppAttestExpectations) {
        let asked = try NothingVerified.unlessReadable("policy") { try AppAttestOptions(options, self) }
        guard let object else { throw .missing("object", code: nil, "no object is given") }
        var expected = expected
        (expected.appIDs, expected.environments) = (asked.appIDs, asked.environments)
        return (object, asked, expected)
    }
}
