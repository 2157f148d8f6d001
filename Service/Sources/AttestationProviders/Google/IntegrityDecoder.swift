internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging
internal import PlayIntegrity
internal import StrictJSON

/// Decodes Play Integrity tokens with Google's method `decodeIntegrityToken`
/// ([reference](https://developer.android.com/google/play/integrity/reference/rest/v1/v1/decodeIntegrityToken)).
final class IntegrityDecoder: Sendable {
    fileprivate struct State {
        var tokens: [Secret: AccessTokens] = [:]
        /// When requests about a subject may resume after Google asked for a pause.
        var pauses: [IntegritySubject: UnixTime] = [:]
        /// The subjects for which the log has already explained an unlinked Cloud project.
        var explained: Set<IntegritySubject> = []
        var usage = IntegrityUsageCount()

        mutating func pause(_ subject: IntegritySubject, until: UnixTime) {
            if pauses.count >= IntegrityDecoder.maximumCached { pauses.removeAll() }
            pauses[subject] = until
        }
    }

    private static let maximumCached = 1000

    private let http: ProviderHTTP
    private let settings: GoogleSettings
    private let clock: any ServiceClock
    private let backOff: BackOff
    private let logger: Logger
    private let state = Locked(State())

    init(
        http: ProviderHTTP, settings: GoogleSettings, clock: any ServiceClock, backOff: BackOff, logger: Logger
    ) {
        self.http = http
        self.settings = settings
        self.clock = clock
        self.backOff = backOff
        self.logger = logger
    }

    func usage() -> [IntegrityUsage] {
        let now = clock.now
        return state.withLock { $0.usage.days(at: now) }
    }

    /// - Parameter total: the remaining time until the deadline.
    func decode(
        _ token: String, package: String, for caller: IntegrityCaller, within total: Duration
    ) async -> DecodeOutcome {
        guard total > .zero else { return .couldNotCheck(.init(.network, "no time was left for \(package)")) }
        guard let request = DecodeRequest(package: package, token: token) else {
            return .couldNotCheck(.init(.unexpectedAnswer, "\(package.prefix(64)) is not a package name"))
        }
        guard let tokens = accessTokens(of: caller.serviceAccount) else {
            return .couldNotCheck(.init(.unauthenticated, "the service account cannot be read"))
        }
        let subject = IntegritySubject(caller: caller, package: package)
        if isPaused(subject) {
            return .couldNotCheck(.init(.quotaExceeded, "Google asked for a pause for \(package)"))
        }
        let attempts = Locked(0)
        // Leave time for a renewal of the access token.
        var outcome = await backOff.run(within: max(total - settings.accessTokenDeadline, total / 2)) { left in
            attempts.withLock { $0 += 1 }
            return await attempt(request, subject, tokens, within: left)
        }
        // The answer to an earlier attempt may have been lost.
        if case .decoded(let verdict) = outcome, verdict.isCleared, attempts.withLock({ $0 }) > 1 {
            outcome = .couldNotCheck(.init(.network, "the verdict is empty, as for a token that was decoded before"))
        }
        explainOnce(outcome, subject, tokens.account)
        return outcome
    }

    private func attempt(
        _ request: DecodeRequest, _ subject: IntegritySubject, _ tokens: AccessTokens, within left: Duration
    ) async -> BackOff.Attempt<DecodeOutcome> {
        let start = ContinuousClock.now
        do throws(PlayIntegrityUnavailable) {
            let token = try await tokens.token()
            let answer = try await send(request, subject, token, within: left - (ContinuousClock.now - start))
            guard answer.status == 401 else { return judged(answer, subject) }
            // Google may have revoked the access token before its expiry, so try a new one. If Google refuses the new one too, do
            // not retry.
            let fresh = try await tokens.token(insteadOf: token)
            return judged(
                try await send(request, subject, fresh, within: left - (ContinuousClock.now - start)), subject)
        } catch {
            // Only a network failure is retried here: requests for access tokens have their own back-off.
            return error.code == .network
                ? .again(after: nil, else: .couldNotCheck(error)) : .done(.couldNotCheck(error))
        }
    }

    private func send(
        _ request: DecodeRequest, _ subject: IntegritySubject, _ token: AccessToken, within limit: Duration
    ) async throws(PlayIntegrityUnavailable) -> ProviderResponse {
        let now = clock.now
        state.withLock { $0.usage.count(subject, at: now) { $0.requests += 1 } }
        let message = ProviderRequest(
            call: .playIntegrity, url: settings.playIntegrityURL + request.path,
            headers: [("Authorization", "Bearer \(token.value)"), ("Content-Type", "application/json")],
            body: request.body, maximumResponse: DecodeRequest.maximumAnswer)
        do { return try await http.send(message, within: limit) } catch {
            throw PlayIntegrityUnavailable(error == .tooLarge ? .unexpectedAnswer : .network, "\(error)")
        }
    }

    private func judged(_ answer: ProviderResponse, _ subject: IntegritySubject) -> BackOff.Attempt<DecodeOutcome> {
        let outcome = DecodeOutcome.googleAnswer(status: answer.status, body: answer.body)
        let now = clock.now
        switch answer.status {
        case 429:
            state.withLock { state in
                state.usage.count(subject, at: now) { $0.refused += 1 }
                state.pause(subject, until: now + min(max(answer.retryAfter ?? 10, 1), Self.longestPause))
            }
            return .again(after: answer.retryAfter, else: outcome)
        case 500...599:
            if let seconds = answer.retryAfter {
                state.withLock { $0.pause(subject, until: now + min(max(seconds, 1), Self.longestPause)) }
            }
            return .again(after: answer.retryAfter, else: outcome)
        default:
            state.withLock { $0.pauses[subject] = nil }
            return .done(outcome)
        }
    }

    // MARK: State

    /// The longest pause that an answer of Google causes, in seconds. A longer `Retry-After` is shortened to this.
    private static let longestPause: Int64 = 300

    private func isPaused(_ subject: IntegritySubject) -> Bool {
        let now = clock.now
        // Ignore a pause that ends later than the longest possible one: it began while the clock was ahead.
        return state.withLock { state in
            state.pauses[subject].map { (now + 1...now + Self.longestPause).contains($0) } ?? false
        }
    }

    private func accessTokens(of secret: Secret) -> AccessTokens? {
        if let known = state.withLock({ $0.tokens[secret] }) { return known }
        guard let json = try? JSONValue(parsing: secret.exposed), let fields = try? JSONFields(json),
            let account = try? ServiceAccount(fields)
        else { return nil }
        let made = AccessTokens(
            account: account, http: http, deadline: settings.accessTokenDeadline, clock: clock, backOff: backOff,
            logger: logger)
        return state.withLock { state in
            if let known = state.tokens[secret] { return known }
            if state.tokens.count >= Self.maximumCached { state.tokens.removeAll() }
            state.tokens[secret] = made
            return made
        }
    }

    /// Logs how to correct the most frequent mistake, an unlinked Cloud project. Logs it once for each subject, and again only if
    /// the subject has worked in between.
    private func explainOnce(_ outcome: DecodeOutcome, _ subject: IntegritySubject, _ account: ServiceAccount) {
        switch outcome {
        case .couldNotCheck(let reason) where reason.code == .projectNotLinked:
            let isNew = state.withLock { state in
                if state.explained.count >= Self.maximumCached { state.explained.removeAll() }
                return state.explained.insert(subject).inserted
            }
            guard isNew else { return }
            logger.error(
                "Play Integrity does not decode for this service account",
                metadata: [
                    "reason": "\(reason.reason)",
                    "app": "\(subject.caller.app)", "package": "\(subject.package)",
                    "service_account": "\(account.clientEmail)",
                ])
        case .decoded: state.withLock { _ = $0.explained.remove(subject) }
        default: break
        }
    }
}
