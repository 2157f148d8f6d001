internal import AppAttest
internal import Bytes
internal import StrictJSON

extension JSONValue {
    /// Octets as hexadecimal digits.
    static func hex(_ bytes: some Sequence<UInt8>) -> JSONValue { .string(Hexadecimal.encode(bytes)) }

    /// A part of an Apple object: octets as hexadecimal digits.
    init(_ described: DescribedValue) {
        switch described {
        case .text(let text): self = .string(text)
        case .number(let number): self = .integer(number)
        case .flag(let flag): self = .bool(flag)
        case .bytes(let bytes): self = .hex(bytes)
        case .list(let elements): self = .array(elements.map(JSONValue.init))
        case .fields(let fields): self = .object(JSONObject(fields.map { ($0.name, JSONValue($0.value)) }))
        }
    }
}

/// What objects say, in the names that input lines use.
enum AppAttestFacts {
    static func facts(of object: AttestationObject) -> JSONObject {
        var facts = facts(of: object.authenticatorData)
        facts["environment"] = object.authenticatorData.claimedEnvironment.map { .string($0.rawValue) } ?? .null
        if let credential = object.authenticatorData.credential {
            facts["key_id"] = .string(Base64.standard.encode(credential.identifier))
            facts["aaguid"] = .hex(credential.aaguid)
        }
        guard let leaf = object.certificates.first.flatMap(AppleCertificate.init) else { return facts }
        facts["public_key_x963"] = leaf.x963.map { .string(Base64.standard.encode($0)) }
        facts["leaf_not_before"] = RFC3339.text(leaf.notBefore).map { .string($0) }
        facts["leaf_not_after"] = RFC3339.text(leaf.notAfter).map { .string($0) }
        guard let properties = try? LeafProperties(leaf) else { return facts }
        facts["app_id"] = properties.appID.map { .string($0) }
        facts["platform"] = properties.platform.map { .string($0.rawValue) }
        facts["os_version"] = properties.systemVersion.map { .string($0) }
        facts["os_build"] = properties.systemBuild.map { .string($0) }
        return facts
    }

    static func facts(of object: AssertionObject) -> JSONObject { facts(of: object.authenticatorData) }

    private static func facts(of data: AuthenticatorData) -> JSONObject {
        var facts = JSONObject()
        facts["counter"] = .integer(data.counter)
        facts["auth_data_flags"] = .string("0x" + Hexadecimal.encode([data.flags]))
        facts["rp_id_hash"] = .hex(data.relyingPartyIDHash)
        guard let extensions = data.describedExtensions else { return facts }
        facts["extensions"] = JSONValue(extensions)
        if let category = data.claimedExtensions?.category {
            facts["category"] = .integer(category.rawValue)
            facts["category_name"] = category.name.map { .string($0) }
        }
        facts["bundle_version"] = data.claimedExtensions?.bundleVersion.map { .string($0) }
        return facts
    }

    static func facts(of receipt: Receipt) -> JSONObject {
        let fields = receipt.fields
        var facts = JSONObject()
        facts["receipt_type"] = .string(fields.kind.rawValue)
        facts["app_id"] = .string(fields.appID)
        facts["environment"] = fields.environment.map { .string($0) }
        facts["key_id"] = ReceiptSteps.keyID(of: receipt).map { .string($0.base64) }
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
