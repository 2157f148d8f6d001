internal import AuthContract
internal import AuthService
internal import GRDB

/// The statements about keys and their roles. Each call is part of the caller's transaction.
extension Database {
    func binding(of thumbprint: String) throws -> KeyBinding? {
        try Row.fetchOne(
            cachedStatement(
                sql: """
                    SELECT app_id, device_id, role FROM keys JOIN devices USING (device_id) WHERE thumbprint = ?
                    """), arguments: [thumbprint]
        ).map { try KeyBinding(row: StoredRow($0)) }
    }

    func bind(_ key: DevicePublicKey, to device: DeviceID, as role: KeyBinding.Role) throws {
        try cachedStatement(sql: "INSERT INTO keys (thumbprint, device_id, role) VALUES (?, ?, ?)")
            .execute(arguments: [key.thumbprint, device.text, role.rawValue])
    }

    func moveKeys(of device: DeviceID, from: KeyBinding.Role, to: KeyBinding.Role) throws {
        try cachedStatement(sql: "UPDATE keys SET role = ? WHERE device_id = ? AND role = ?")
            .execute(arguments: [to.rawValue, device.text, from.rawValue])
    }

    /// Whether another device of the app has the same attested key.
    func isAttestedKeyTaken(_ evidence: AppAttestKeyState?, app: AppID, device: DeviceID) throws -> Bool {
        guard let evidence else { return false }
        return try Bool.fetchOne(
            cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM devices WHERE app_id = ? AND attested_key_id = ? AND device_id <> ?)
                    """), arguments: [app.text, evidence.keyID.data, device.text]) ?? true
    }
}
