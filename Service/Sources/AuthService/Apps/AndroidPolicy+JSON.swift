internal import AndroidKeyAttestation
internal import AuthContract
internal import StrictJSON

extension AndroidPolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "packages", "certificate_digests", "minimum_version_code", "proof", "trust_anchors", "play_integrity",
            "key_attestation")
        packages = try fields.optionalStrings("packages") ?? []
        guard !packages.isEmpty else { throw JSONError(.missing, path: fields.pathOf("packages")) }
        let digests = try fields.optionalStrings("certificate_digests") ?? []
        certificateDigests = digests.compactMap { Base64.url.decode($0) }.filter { $0.count == 32 }
        guard !digests.isEmpty, certificateDigests.count == digests.count else {
            throw JSONError(.wrongType, path: fields.pathOf("certificate_digests"))
        }
        minimumVersionCode = try fields.optionalInteger("minimum_version_code", in: 0...Int64.max)
        proof = try fields.optionalChoice("proof") ?? proof
        trustAnchors = try fields.optionalStrings("trust_anchors") ?? []
        playIntegrity =
            try fields.optionalObject("play_integrity").map { try PlayIntegritySettings($0) } ?? playIntegrity
        keyAttestation =
            try fields.optionalObject("key_attestation").map { try KeyAttestationSettings($0) } ?? keyAttestation
    }

    func json(secrets: AppRecord.SecretsForm) -> JSONObject {
        JSONObject([
            ("packages", .strings(packages)),
            ("certificate_digests", .strings(certificateDigests.map { Base64.url.encode($0) })),
            ("minimum_version_code", minimumVersionCode.map { .integer($0) } ?? .null),
            ("proof", .string(proof.rawValue)), ("trust_anchors", .strings(trustAnchors)),
            ("play_integrity", .object(playIntegrity.json(secrets: secrets))),
            ("key_attestation", .object(keyAttestation.json)),
        ])
    }
}

extension PlayIntegritySettings {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "keys", "service_account", "device_labels", "require_licensed", "maximum_age_seconds",
            "allow_test_responses", "refuse_play_protect", "refuse_app_access_risk", "maximum_activity_level",
            "refuse_device_recall")
        keys = try (fields.optionalArray("keys") ?? []).enumerated().map { index, value in
            let pair = try JSONFields(value, path: "\(fields.pathOf("keys"))[\(index)]")
            try pair.allowOnly("decryption_key", "verification_key")
            let decryptionKey = try pair.string("decryption_key")
            guard Base64.standard.decode(decryptionKey)?.count == 32 else {
                throw JSONError(.wrongType, path: pair.pathOf("decryption_key"))
            }
            let verificationKey = try pair.string("verification_key")
            guard (try? DevicePublicKey(base64: verificationKey)) != nil else {
                throw JSONError(.wrongType, path: pair.pathOf("verification_key"))
            }
            return ResponseKeys(decryptionKey: Secret(decryptionKey), verificationKey: verificationKey)
        }
        serviceAccount = try Self.serviceAccount(fields)
        deviceLabels = try fields.optionalStrings("device_labels") ?? deviceLabels
        requireLicensed = try fields.optionalBool("require_licensed") ?? requireLicensed
        maximumAgeSeconds = try fields.optionalInteger("maximum_age_seconds", in: 1...86_400) ?? maximumAgeSeconds
        allowTestResponses = try fields.optionalBool("allow_test_responses") ?? allowTestResponses
        refusePlayProtect = try fields.optionalStrings("refuse_play_protect") ?? []
        refuseAppAccessRisk = try fields.optionalStrings("refuse_app_access_risk") ?? []
        maximumActivityLevel = try fields.optionalParsed("maximum_activity_level") { text in
            guard ["LEVEL_1", "LEVEL_2", "LEVEL_3", "LEVEL_4"].contains(text) else {
                throw ContractError("LEVEL_1 to LEVEL_4")
            }
            return text
        }
        refuseDeviceRecall = try fields.optionalStrings("refuse_device_recall") ?? []
    }

    /// The account's file, pasted as an object or kept as its text.
    private static func serviceAccount(_ fields: JSONFields) throws -> Secret? {
        guard let value = fields.optionalValue("service_account") else { return nil }
        let account = try value.string.map { try JSONValue(parsing: $0) } ?? value
        let members = try JSONFields(account, path: fields.pathOf("service_account"))
        _ = (try members.string("client_email"), try members.string("private_key"), try members.string("token_uri"))
        return Secret(account.text())
    }

    func json(secrets: AppRecord.SecretsForm) -> JSONObject {
        func written(_ secret: Secret) -> JSONValue {
            .string(secrets == .plain ? secret.exposed : secret.description)
        }
        return JSONObject([
            (
                "keys",
                .array(
                    keys.map {
                        [
                            "decryption_key": written($0.decryptionKey),
                            "verification_key": .string($0.verificationKey),
                        ]
                    })
            ), ("service_account", serviceAccount.map(written) ?? .null), ("device_labels", .strings(deviceLabels)),
            ("require_licensed", .bool(requireLicensed)), ("maximum_age_seconds", .integer(maximumAgeSeconds)),
            ("allow_test_responses", .bool(allowTestResponses)), ("refuse_play_protect", .strings(refusePlayProtect)),
            ("refuse_app_access_risk", .strings(refuseAppAccessRisk)),
            ("maximum_activity_level", maximumActivityLevel.map { .string($0) } ?? .null),
            ("refuse_device_recall", .strings(refuseDeviceRecall)),
        ])
    }
}

extension KeyAttestationSettings {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "minimum_security_level", "boot_states", "boot_keys", "maximum_patch_age_days", "status_list")
        minimumSecurityLevel = try fields.optionalChoice("minimum_security_level") ?? minimumSecurityLevel
        bootStates = try fields.optionalStrings("boot_states") ?? bootStates
        guard !bootStates.isEmpty, bootStates.allSatisfy({ ["Verified", "SelfSigned"].contains($0) }) else {
            throw JSONError(.wrongType, path: fields.pathOf("boot_states"))
        }
        let keys = try fields.optionalStrings("boot_keys") ?? []
        bootKeys = keys.compactMap { JSONCoding.sha256.read(.string($0)) }
        guard bootKeys.count == keys.count else { throw JSONError(.wrongType, path: fields.pathOf("boot_keys")) }
        maximumPatchAgeDays = try fields.optionalInteger("maximum_patch_age_days", in: 1...36_500)
        statusList = try fields.optionalString("status_list")
    }

    var json: JSONObject {
        JSONObject([
            ("minimum_security_level", .string(minimumSecurityLevel.rawValue)), ("boot_states", .strings(bootStates)),
            ("boot_keys", .strings(bootKeys.map { Hexadecimal.encode($0) })),
            ("maximum_patch_age_days", maximumPatchAgeDays.map { .integer($0) } ?? .null),
            ("status_list", statusList.map { .string($0) } ?? .null),
        ])
    }
}
