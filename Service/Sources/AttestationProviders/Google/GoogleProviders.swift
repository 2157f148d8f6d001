package import AndroidKeyAttestation
package import AuthContract
package import AuthService
package import Logging
package import PlayIntegrity

/// Addresses and deadlines of Google's services.
package struct GoogleSettings: Sendable {
    /// The server that decodes Play Integrity tokens. Tests set another one.
    package var playIntegrityURL = DecodeRequest.endpoint
    /// The deadline for decoding a token, including access token, retries, pauses, and all packages of the app.
    package var decodeDeadline: Duration = .seconds(10)
    /// The deadline for fetching an access token. Decoding reserves this much of ``decodeDeadline``, at most half of it,
    /// for a renewal of the token.
    package var accessTokenDeadline: Duration = .seconds(4)

    /// The defaults.
    package init() {}
}

/// Google's services, as an implementation of AuthService's `EvidenceProviders`.
///
/// No call hangs: each ends within its deadline, and an outage is one of its outcomes.
package struct GoogleProviders: EvidenceProviders {
    private let decoder: IntegrityDecoder
    private let lists: RevocationLists
    private let decodeDeadline: Duration

    /// Providers over one HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - lists: the revocation lists. Run them in the background.
    ///   - settings: addresses and deadlines.
    ///   - clock: the current time, for access tokens, pauses and daily counts.
    ///   - random: jitters the pauses between attempts.
    ///   - pause: waits. Throws if the task is cancelled.
    ///   - logger: logs failures with their reasons.
    package init(
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

    /// Lets Google decode a Play Integrity token. An outage is an outcome, not an error.
    package func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        await decoder.decode(token, package: package, for: caller, within: decodeDeadline)
    }

    /// Lets Google decode a token of an app that has several packages, all within one deadline.
    package func decode(_ token: String, packages: [String], for caller: IntegrityCaller) async -> DecodeOutcome {
        let start = ContinuousClock.now
        return await Self.firstVerdict(of: packages) { package in
            await decoder.decode(
                token, package: package, for: caller,
                within: decodeDeadline - (ContinuousClock.now - start))
        }
    }

    /// The list of revoked Android attestation keys from a URL or a file; nil if there is none that is recent enough.
    package func revocations(from source: String) async -> RevocationStatusList? { await lists.list(from: source) }

    /// Today's and yesterday's requests to Play Integrity, by app and package, and the state of each revocation list.
    package func report() async -> ProviderReport {
        ProviderReport(integrityUsage: decoder.usage(), revocationLists: await lists.states())
    }
}
