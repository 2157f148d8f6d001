public import AndroidKeyAttestation
public import AuthContract
public import AuthService
public import Logging
public import PlayIntegrity

/// Where Google is asked, and for how long.
public struct GoogleSettings: Sendable {
    /// Where Play Integrity tokens are decoded; another one is for tests.
    public var playIntegrityURL = DecodeRequest.endpoint
    /// The longest that decoding a token takes, with access token, retries and pauses, and for all packages of the app.
    public var decodeDeadline: Duration = .seconds(10)
    /// The longest that asking for an access token takes; part of the other, and at most half of it.
    public var accessTokenDeadline: Duration = .seconds(4)

    /// The defaults.
    public init() {}
}

/// Google's services as `AuthService` asks them.
///
/// An outage is an outcome, never a hang: every call ends within its deadline.
public struct GoogleProviders: EvidenceProviders {
    private let decoder: IntegrityDecoder
    private let lists: RevocationLists
    private let decodeDeadline: Duration

    /// Providers over one HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - lists: the revocation lists; run them in the background.
    ///   - settings: addresses and deadlines.
    ///   - clock: the time that answers are judged by.
    ///   - random: of the waits between two attempts.
    ///   - pause: waits, and throws where the task is cancelled.
    ///   - logger: what failed, and why.
    public init(
        http: ProviderHTTP, lists: RevocationLists, settings: GoogleSettings = GoogleSettings(),
        clock: any ServiceClock = SystemClock(), random: any RandomSource = SystemRandom(),
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        logger: Logger = Logger(label: "synheart.google")
    ) {
        self.lists = lists
        decodeDeadline = settings.decodeDeadline
        decoder = IntegrityDecoder(
            http: http, settings: settings, clock: clock, backOff: BackOff(random: random, pause: pause), logger: logger
        )
    }

    /// Has Google decode a Play Integrity token. An outage is an outcome, not an error.
    public func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        await decoder.decode(token, package: package, serviceAccount: serviceAccount, within: decodeDeadline)
    }

    /// Has Google decode a token of an app that has several packages: all of them within the one deadline.
    public func decode(_ token: String, packages: [String], serviceAccount: Secret) async -> DecodeOutcome {
        let start = ContinuousClock.now
        return await Self.firstVerdict(of: packages) { package in
            await decoder.decode(
                token, package: package, serviceAccount: serviceAccount,
                within: decodeDeadline - (ContinuousClock.now - start))
        }
    }

    /// The list of revoked Android attestation keys from a URL or a file; nil where there is none that is young enough.
    public func revocations(from source: String) async -> RevocationStatusList? { await lists.list(from: source) }

    /// What was asked of Play Integrity today and yesterday, by package, and how each revocation list stands.
    public func report() async -> ProviderReport {
        ProviderReport(integrityUsage: decoder.usage(), revocationLists: await lists.states())
    }
}
