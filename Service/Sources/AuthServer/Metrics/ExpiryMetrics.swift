internal import AuthContract
internal import AuthService

/// The expiry of credentials, signing keys and the listeners' certificates, for alerts, and the last use of credentials. All are
/// set at each scrape.
extension ServerMetrics {
    private static let credentialExpiry = "synheart_credential_expiry_timestamp_seconds"
    private static let credentialUse = "synheart_credential_last_use_timestamp_seconds"
    private static let signingKeyExpiry = "synheart_signing_key_expiry_timestamp_seconds"
    private static let certificateExpiry = "synheart_tls_certificate_expiry_timestamp_seconds"
    /// The largest number of credentials that are shown. Those that expire first are chosen.
    private static let maximumCredentials = 500

    func describeExpiry() {
        for (name, help) in [
            (Self.credentialExpiry, "When a credential ends, unix time; without those that are revoked or have ended."),
            (Self.credentialUse, "When this process last saw a credential, unix time; 0: not yet."),
            (Self.signingKeyExpiry, "When the last token of a signing key ends, unix time; +Inf: it has no successor."),
            (Self.certificateExpiry, "When the first of the listeners' certificates ends, unix time."),
        ] {
            registry.describe(name, .gauge, help)
        }
    }

    func credentials(_ all: [Credential], at now: UnixTime) {
        let live = all.filter { $0.revokedAt == nil && $0.expiresAt > now }.sorted { $0.expiresAt < $1.expiresAt }
            .prefix(Self.maximumCredentials)
        let uses = credentialUses
        registry.replace(
            Self.credentialExpiry,
            with: live.map { (Self.labels($0), Double($0.expiresAt.seconds)) })
        registry.replace(
            Self.credentialUse,
            with: live.map { (Self.labels($0), Double(uses[$0.id]?.seconds ?? 0)) })
    }

    private static func labels(_ credential: Credential) -> MetricsRegistry.Labels {
        [("id", credential.id), ("name", credential.name), ("role", credential.role.rawValue)]
    }

    func signingKeys(_ keys: [StoredSigningKey]) {
        let ring = SigningKeyRing(keys)
        let ends = keys.indices.map { index in
            let end = ring.lastTokenEnds(ofKeyAt: index)
            return ([("kid", keys[index].id)], end.map { Double($0.seconds) } ?? .infinity)
        }
        registry.replace(Self.signingKeyExpiry, with: ends)
    }

    func certificate(_ end: UnixTime?) {
        registry.replace(Self.certificateExpiry, with: end.map { [([], Double($0.seconds))] } ?? [])
    }
}
