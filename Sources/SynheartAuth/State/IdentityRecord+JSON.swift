internal import AuthContract
internal import StrictJSON

// The persisted form of a record.

extension IdentityRecord.Fields {
    private static let version: Int64 = 1

    var bytes: [UInt8] {
        var json = JSONObject()
        json["version"] = .integer(Self.version)
        json["app_id"] = .string(appID.text)
        json["state"] = .string(state.rawValue)
        json["identity"] = .string(identity.rawValue)
        json["device_id"] = deviceID.map { .string($0.text) }
        json["platform"] = platform.map { .string($0.rawValue) }
        json["key_alias"] = key.map { .string($0.alias.text) }
        json["key_thumbprint"] = key.map { .string($0.thumbprint) }
        json["registered_at"] = registeredAt.map { .integer($0.seconds) }
        json["key_rotated_at"] = keyRotatedAt.map { .integer($0.seconds) }
        json["clock_offset_ms"] = .integer(clockOffset.milliseconds)
        json["attestation_key_id"] = attestationKey.map { .string($0.id) }
        json["attestation_key_used"] = attestationKey.map { .bool($0.isUsed) }
        json["attestation_key_suspicion"] = attestationKey?.suspicion.map { .object($0.json) }
        json["attestation_key_owner"] = attestationOwner.map { .string($0) }
        if !suspicions.isEmpty {
            var keys = JSONObject()
            for (alias, suspicion) in suspicions { keys[alias.text] = .object(suspicion.json) }
            json["suspicions"] = .object(keys)
        }
        json["auth_origin"] = authOrigin.map { .string($0) }
        json["must_rotate_by"] = rotationDemand.map { .integer($0.by.seconds) }
        json["must_rotate_reason"] = rotationDemand.map { .string($0.reason.rawValue) }
        json["scheme_floor"] = schemeFloor == .one ? nil : .integer(Int64(schemeFloor.rawValue))
        json["journal"] = journal.map { .object($0.json) }
        return JSONValue.object(json).bytes
    }

    init(_ bytes: [UInt8], appID: AppID) throws {
        let fields = try JSONFields(JSONValue(parsing: bytes))
        let version = try fields.integer("version")
        if version > Self.version { throw NewerRecord() }
        guard version == Self.version else { throw JSONError(.unknownName, path: "version") }
        guard try fields.string("app_id") == appID.text else { throw JSONError(.wrongType, path: "app_id") }
        self.init(appID: appID)
        state = try fields.parsed("state") { try IdentityState(rawValue: $0).orThrow() }
        identity = try fields.parsed("identity") { try IdentityRecord.Identity(rawValue: $0).orThrow() }
        deviceID = try fields.optionalParsed("device_id") { try DeviceID($0) }
        platform = try fields.optionalChoice("platform")
        if let alias = try fields.optionalString("key_alias") {
            key = try IdentityRecord.KeyReference(fields, alias: alias, appID: appID)
        }
        registeredAt = try fields.optionalInteger("registered_at").map { UnixTime($0) }
        keyRotatedAt = try fields.optionalInteger("key_rotated_at").map { UnixTime($0) }
        guard let offset = ClockOffset(milliseconds: try fields.integer("clock_offset_ms")) else {
            throw JSONError(.wrongType, path: "clock_offset_ms")
        }
        clockOffset = offset
        attestationKey = try fields.attestationKey()
        attestationKey?.suspicion = try fields.optionalObject("attestation_key_suspicion").map { try Suspicion($0) }
        attestationOwner = try fields.optionalString("attestation_key_owner")
        if let keys = try fields.optionalObject("suspicions") {
            for alias in KeyAlias.both(appID) {
                suspicions[alias] = try keys.optionalObject(alias.text).map { try Suspicion($0) }
            }
        }
        authOrigin = try fields.optionalString("auth_origin")
        if let by = try fields.optionalInteger("must_rotate_by") {
            rotationDemand = RotationDemand(
                by: UnixTime(by), reason: try fields.optionalChoice("must_rotate_reason") ?? .scheduled)
        }
        if let floor = try fields.optionalInteger("scheme_floor") {
            schemeFloor = try Int(exactly: floor).flatMap(SignatureScheme.init(rawValue:)).orThrow()
        }
        journal = try fields.optionalObject("journal").map { try JournalEntry($0, appID: appID) }
        guard isConsistent else { throw JSONError(.wrongType, path: "state") }
    }

    var isConsistent: Bool {
        let allowed: Bool =
            switch state {
            case .unregistered, .challengeReceived, .keyReady, .keyInvalid: identity == .none
            case .registering: true
            case .registered: identity == .active
            }
        return allowed && (identity == .none || (deviceID != nil && key != nil && platform != nil))
    }
}

extension IdentityRecord.KeyReference {
    fileprivate init(_ fields: JSONFields, alias: String, appID: AppID) throws {
        self.init(
            alias: try KeyAlias.named(alias, of: appID).orThrow(), thumbprint: try fields.string("key_thumbprint"))
    }
}

extension JournalEntry {
    fileprivate var json: JSONObject {
        var json = JSONObject()
        switch self {
        case .registration(let key, let isSent):
            json["operation"] = "registration"
            json["key_alias"] = .string(key.alias.text)
            json["key_thumbprint"] = .string(key.thumbprint)
            json["sent"] = .bool(isSent)
        case .rotation(let rotation):
            json["operation"] = "rotation"
            json["key_alias"] = .string(rotation.alias.text)
            json["key_thumbprint"] = rotation.thumbprint.map { .string($0) }
            json["reason"] = .string(rotation.reason.rawValue)
            json["last_copy"] = rotation.lastCopy.map { .integer($0.seconds) }
            json["refused"] = .bool(rotation.isRefused)
            json["attestation_key_id"] = rotation.newHandle.map { .string($0.id) }
            json["attestation_key_used"] = rotation.newHandle.map { .bool($0.isUsed) }
        case .disposal(let alias):
            json["operation"] = "disposal"
            json["key_alias"] = .string(alias.text)
        case .reset(let reason):
            json["operation"] = "reset"
            json["reason"] = .string(reason.rawValue)
        }
        return json
    }

    fileprivate init(_ fields: JSONFields, appID: AppID) throws {
        let alias = try fields.optionalString("key_alias").map { try KeyAlias.named($0, of: appID).orThrow() }
        switch (try fields.string("operation"), alias) {
        case ("registration", let alias?):
            let key = try IdentityRecord.KeyReference(fields, alias: alias.text, appID: appID)
            self = .registration(key, isSent: try fields.bool("sent"))
        case ("rotation", let alias?):
            self = .rotation(
                PendingRotation(
                    alias: alias, reason: try fields.optionalChoice("reason") ?? .scheduled,
                    thumbprint: try fields.optionalString("key_thumbprint"),
                    lastCopy: try fields.optionalInteger("last_copy").map { UnixTime($0) },
                    isRefused: try fields.bool("refused"), newHandle: try fields.attestationKey()))
        case ("disposal", let alias?): self = .disposal(alias)
        case ("reset", _): self = .reset(try fields.parsed("reason") { try ResetReason(rawValue: $0).orThrow() })
        default: throw JSONError(.wrongType, path: "journal.operation")
        }
    }
}

extension Suspicion {
    fileprivate var json: JSONObject {
        var json = JSONObject()
        json["process"] = .string(String(process.value, radix: 16))
        json["at_ms"] = .integer(at.wholeMilliseconds)
        return json
    }

    fileprivate init(_ fields: JSONFields) throws {
        self.init(
            process: ProcessID(value: try UInt64(try fields.string("process"), radix: 16).orThrow()),
            at: .milliseconds(try fields.integer("at_ms")))
    }
}

extension JSONFields {
    fileprivate func attestationKey() throws -> IdentityRecord.AttestationKey? {
        guard let id = try optionalString("attestation_key_id") else { return nil }
        return IdentityRecord.AttestationKey(id: id, isUsed: try bool("attestation_key_used"))
    }
}

extension Optional {
    fileprivate func orThrow() throws -> Wrapped {
        guard let self else { throw JSONError(.wrongType, path: "") }
        return self
    }
}
