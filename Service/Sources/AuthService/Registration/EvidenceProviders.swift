public import AndroidKeyAttestation
public import AuthContract
@_spi(Service) public import PlayIntegrity

/// The app for which Google is asked, and its service account. Google's answer for one app never affects another, even if both
/// name the same package.
public struct IntegrityCaller: Sendable, Hashable {
    /// The app whose registration is judged.
    public let app: AppID
    /// The service account's JSON.
    public let serviceAccount: Secret

    /// A caller.
    public init(app: AppID, serviceAccount: Secret) {
        self.app = app
        self.serviceAccount = serviceAccount
    }
}

/// The services of Google that the registration rules call. Tests and offline services use ``NoProviders``.
public protocol EvidenceProviders: Sendable {
    /// Has Google decode a Play Integrity token. An outage is an outcome, not an error.
    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome

    /// Lets Google decode a token of an app that has several packages, all within one deadline. The default implementation asks
    /// for each package in turn.
    func decode(_ token: String, packages: [String], for caller: IntegrityCaller) async -> DecodeOutcome

    /// The list of revoked Android attestation keys from a URL or a file; nil if no list is recent enough.
    func revocations(from source: String) async -> RevocationStatusList?

    /// The requests of this process, and the state of its revocation lists.
    func report() async -> ProviderReport
}

extension EvidenceProviders {
    /// An empty report.
    public func report() async -> ProviderReport { ProviderReport() }
}

extension EvidenceProviders {
    /// Lets Google decode a token of an app that has several packages. A token does not name its package, and Google decodes it
    /// only for that package.
    ///
    /// A refusal, an unlinked Cloud project or a used-up quota concerns only one package, and the search continues. An outage, or
    /// an account that Google does not accept, concerns every package and ends the search.
    ///
    /// - Returns: the first verdict. Without one, `refused` if Google refused the token for every package, else `couldNotCheck`.
    public func decode(_ token: String, packages: [String], for caller: IntegrityCaller) async -> DecodeOutcome {
        await Self.firstVerdict(of: packages) { package in
            await decode(token, package: package, for: caller)
        }
    }

    /// Asks for each package in turn, as `decode(_:packages:for:)` describes.
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

/// No providers: tokens cannot be decoded by Google, and there are no revocation lists.
public struct NoProviders: EvidenceProviders {
    /// No providers.
    public init() {}

    public func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        .couldNotCheck(PlayIntegrityUnavailable(.network, "no provider is configured"))
    }

    public func revocations(from source: String) async -> RevocationStatusList? { nil }
}
