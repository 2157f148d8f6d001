public import AndroidKeyAttestation
public import PlayIntegrity

/// What the service asks of others beside what it can decide alone. Tests and offline services have `NoProviders`.
public protocol EvidenceProviders: Sendable {
    /// Has Google decode a Play Integrity token. An outage is an outcome, not an error.
    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome

    /// The list of revoked Android attestation keys from a URL or a file, young enough to be used; nil where there is none.
    func revocations(from source: String) async -> RevocationStatusList?

    /// What was asked, and how what is kept stands.
    func report() async -> ProviderReport
}

extension EvidenceProviders {
    /// Nothing to report.
    public func report() async -> ProviderReport { ProviderReport() }
}

/// Nobody can be asked.
public struct NoProviders: EvidenceProviders {
    /// No providers.
    public init() {}

    public func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        .couldNotCheck(PlayIntegrityUnavailable(.network, "no provider is configured"))
    }

    public func revocations(from source: String) async -> RevocationStatusList? { nil }
}
