internal import AuthContract
internal import AuthService

/// The statements about keys and their roles. Each is part of a change's transaction, but `bindings` is also a look-up by itself.
enum KeyTable {
    static func bindings(of thumbprints: [String]) -> Statement {
        Statement(
            """
            SELECT thumbprint, app_id, device_id, role FROM keys JOIN devices USING (device_id)
            WHERE thumbprint = ANY ($1)
            """, [.texts(thumbprints)])
    }

    static func bind(_ key: DevicePublicKey, to device: DeviceID, as role: KeyBinding.Role) -> Statement {
        Statement(
            "INSERT INTO keys (thumbprint, device_id, role) VALUES ($1, $2, $3)",
            [.text(key.thumbprint), .uuid(device), .text(role.rawValue)])
    }

    static func move(of device: DeviceID, from: KeyBinding.Role, to: KeyBinding.Role) -> Statement {
        Statement(
            "UPDATE keys SET role = $1 WHERE device_id = $2 AND role = $3",
            [.text(to.rawValue), .uuid(device), .text(from.rawValue)])
    }

    /// Finds another device of the app with the same attested key.
    static func attestedKey(_ evidence: AppAttestKeyState?, app: AppID, device: DeviceID) -> Statement {
        // Without evidence the comparison is with NULL, which finds no row.
        Statement(
            "SELECT 1 FROM devices WHERE app_id = $1 AND attested_key_id = $2 AND device_id <> $3",
            [.text(app.text), .bytes(evidence?.keyID), .uuid(device)])
    }
}
