internal import AppAttest
internal import Bytes
internal import StrictJSON
internal import Verification

extension JSONValue {
    /// Bytes as hexadecimal digits.
    static func hex(_ bytes: some Sequence<UInt8>) -> JSONValue { .string(Hexadecimal.encode(bytes)) }
}

/// The contents of App Attest objects, as JSON objects. Their members have the same names as in the input lines of the batch interface.
enum AppAttestFacts {
    static func facts(of object: AttestationObject) -> JSONObject {
        let claims = object.unverifiedClaims
        var facts = facts(of: claims)
        facts["environment"] = claims.credential?.environment.map { .string($0.rawValue) } ?? .null
        if let credential = claims.credential {
            facts["key_id"] = .string(Base64.standard.encode(credential.identifier))
            facts["aaguid"] = .hex(credential.aaguid)
        }
        guard let leaf = claims.leaf else { return facts }
        facts["public_key_x963"] = leaf.publicKeyX963.map { .string(Base64.standard.encode($0)) }
        facts["leaf_not_before"] = RFC3339.text(leaf.notBefore).map { .string($0) }
        facts["leaf_not_after"] = RFC3339.text(leaf.notAfter).map { .string($0) }
        facts["app_id"] = leaf.appID.map { .string($0) }
        facts["platform"] = leaf.platform.map { .string($0.rawValue) }
        facts["os_version"] = leaf.systemVersion.map { .string($0) }
        facts["os_build"] = leaf.systemBuild.map { .string($0) }
        return facts
    }

    static func facts(of object: AssertionObject, _ evidence: AppAttestEvidence) -> JSONObject {
        var facts = Self.facts(of: object.unverifiedClaims)
        if facts["extensions"] != nil { facts["extensions_proven"] = .bool(evidence.expected.attestedExtensions) }
        if let publicKey = evidence.expected.publicKey { facts["key_id"] = .string(KeyID(of: publicKey).base64) }
        return facts
    }

    private static func facts(of claims: UnverifiedClaims) -> JSONObject {
        var facts = JSONObject()
        facts["counter"] = .integer(claims.counter)
        facts["auth_data_flags"] = .string("0x" + Hexadecimal.encode([claims.flags]))
        facts["rp_id_hash"] = .hex(claims.relyingPartyIDHash)
        guard let extensions = claims.extensions else { return facts }
        facts["extensions"] = .object(extensions)
        if let category = claims.category {
            facts["category"] = .integer(category.rawValue)
            facts["category_name"] = category.name.map { .string($0) }
        }
        facts["bundle_version"] = claims.bundleVersion.map { .string($0) }
        return facts
    }

    static func facts(of receipt: Receipt) -> JSONObject {
        let fields = receipt.fields
        var facts = JSONObject()
        facts["receipt_type"] = .string(fields.kind.rawValue)
        facts["app_id"] = .string(fields.appID)
        facts["environment"] = fields.environment.map { .string($0) }
        facts["key_id"] = receipt.unverifiedKeyID.map { .string($0.base64) }
        facts["client_hash_b64"] = .string(Base64.standard.encode(fields.clientHash))
        facts["risk_metric"] = fields.texts[17].map { .string($0) }
        facts["creation_time"] = fields.texts[12].map { .string($0) }
        facts["not_before"] = fields.texts[19].map { .string($0) }
        facts["expiration_time"] = fields.texts[21].map { .string($0) }
        facts["unknown_fields"] =
            fields.unknownTypes.isEmpty ? nil : .array(fields.unknownTypes.map { .integer($0) })
        return facts
    }
}
