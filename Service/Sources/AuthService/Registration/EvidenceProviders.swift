public import AndroidKeyAttestation
@_spi(Service) public import PlayIntegrity

/// What the service asks of others beside what it can decide alone. Tests and offline services have `NoProviders`.
public protocol EvidenceProviders: Sendable {
    /// Has Google decode a Play Integrity token. An outage is an outcome, not an error.
    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome

    /// Has Google decode a token of an app that has several packages, all within one deadline. Without an implementation of
    /// its own, it asks for one package after the other.
    func decode(_ token: String, packages: [String], serviceAccount: Secret) async -> DecodeOutcome

    /// The list of revoked Android attestation keys from a URL or a file, young enough to be used; nil where there is none.
    func revocations(from source: String) async -> RevocationStatusList?

    /// What was asked, and how what is kept stands.
    func report() async -> ProviderReport
}

extension EvidenceProviders {
    /// Nothing to report.
    public func report() async -> ProviderReport { ProviderReport() }
}

extension EvidenceProviders {
    /// Has Google decode a token of an app that has several packages. A token does not say whose it is, and Google decodes it
    /// for its own package alone.
    ///
    /// An answer about one package says nothing about the next one, whether it is a refusal, an unlinked Cloud project or a
    /// used-up quota. An outage, and an account that Google does not accept, concern every package and end the search.
    ///
    /// - Returns: the verdict of the first package that has one. Otherwise the token is refused only if Google refused it for
    ///   every package.
    public func decode(_ token: String, packages: [String], serviceAccount: Secret) async -> DecodeOutcome {
        await Self.firstVerdict(of: packages) { package in
            await decode(token, package: package, serviceAccount: serviceAccount)
        }
    }

    /// Asks for one package after the other, as `decode(_:packages:serviceAccount:)` describes.
    package static func firstVerdict(
        of packages: [String], _ decode: (String) async -> DecodeOutcome
    ) async -> DecodeOutcome {
        var refusal: DecodeOutcome?
        var unknown: DecodeOutcome?
        for package in packages {
            let outcome = await decode(package)
            switch outcome {
            case .decoded: return outcome
            case .refused: refusal = refusal ?? outcome
            case .couldNotCheck(let reason):
                guard !reason.concernsEveryPackage else { return outcome }
                unknown = unknown ?? outcome
            }
        }
        return unknown ?? refusal ?? .couldNotCheck(.init(.unexpectedAnswer, "the app has no package"))
    }
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
