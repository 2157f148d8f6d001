internal import AuthContract
internal import AuthService
internal import Foundation
internal import Logging
internal import PlayIntegrity

/// The access token of one service account. Concurrent callers share one request. The token is renewed before it expires.
/// After a failure there is a pause before the next request.
actor AccessTokens {
    private struct CachedToken {
        let token: AccessToken
        let expiresAt: UnixTime
        var renewAt: UnixTime
    }

    /// Seconds before a token's expiry at which it is renewed.
    private static let margin: Int64 = 300
    /// The seconds before the next request after Google refused the account, and after an outage.
    private static let pauseAfterRefusal: Int64 = 30
    private static let pauseAfterOutage: Int64 = 2

    nonisolated let account: ServiceAccount
    private let http: ProviderHTTP
    private let deadline: Duration
    private let clock: any ServiceClock
    private let backOff: BackOff
    private let logger: Logger

    private var cached: CachedToken?
    private var failure: (error: PlayIntegrityUnavailable, until: UnixTime)?
    private var fetching: Task<Result<AccessToken, PlayIntegrityUnavailable>, Never>?

    init(
        account: ServiceAccount, http: ProviderHTTP, deadline: Duration, clock: any ServiceClock, backOff: BackOff,
        logger: Logger
    ) {
        self.account = account
        self.http = http
        self.deadline = deadline
        self.clock = clock
        self.backOff = backOff
        self.logger = logger
    }

    /// A token, usually valid for some minutes. If a renewal failed, it may expire in 30 s.
    ///
    /// - Parameter rejected: a token that Google did not accept. Several callers with the same rejected token cause only one
    ///   request.
    func token(insteadOf rejected: AccessToken? = nil) async throws(PlayIntegrityUnavailable) -> AccessToken {
        if let rejected, let cached, cached.token.value == rejected.value { self.cached = nil }
        let now = clock.now
        if let cached, now < cached.renewAt { return cached.token }
        // Ignore a pause that ends later than the longest possible one: it began while the clock was ahead.
        if let failure, (now + 1...now + Self.pauseAfterRefusal).contains(failure.until) {
            return try usable(at: now, else: failure.error)
        }
        // Fetch in a separate task, so that a cancelled caller does not cancel the other callers. The task ends within its
        // deadline.
        let current = fetching ?? Task { await fetch() }
        fetching = current
        switch await current.value {
        case .success(let token): return token
        case .failure(let error): return try usable(at: clock.now, else: error)
        }
    }

    /// The cached token, if it is valid for more than 30 s: a failed renewal does not invalidate it. Otherwise throws the error.
    private func usable(
        at now: UnixTime, else error: PlayIntegrityUnavailable
    ) throws(PlayIntegrityUnavailable) -> AccessToken {
        guard let cached, now + 30 < cached.expiresAt else { throw error }
        return cached.token
    }

    private func fetch() async -> Result<AccessToken, PlayIntegrityUnavailable> {
        defer { fetching = nil }
        let asked = clock.now
        let result = await backOff.run(within: deadline) { left in await ask(within: left) }
        switch result {
        case .success(let token):
            failure = nil
            let lifetime = token.lifetimeSeconds
            cached = CachedToken(
                token: token, expiresAt: asked + lifetime,
                renewAt: asked + max(lifetime - Self.margin, lifetime / 2))
        case .failure(let error):
            failure = (error, clock.now + (error.isTransient ? Self.pauseAfterOutage : Self.pauseAfterRefusal))
            logger.warning(
                "no access token from Google",
                metadata: ["service_account": "\(account.clientEmail)", "reason": "\(error)"])
        }
        return result
    }

    private func ask(within limit: Duration) async -> BackOff.Attempt<Result<AccessToken, PlayIntegrityUnavailable>> {
        let answer: ProviderResponse
        do {
            let time = Date(timeIntervalSince1970: TimeInterval(clock.now.seconds))
            let body = try account.tokenRequestBody(at: time)
            answer = try await http.send(
                ProviderRequest(
                    call: .accessToken, url: account.tokenURI,
                    headers: [("Content-Type", "application/x-www-form-urlencoded")], body: body,
                    maximumResponse: AccessToken.maximumAnswer), within: limit)
        } catch let failure as ProviderFailure {
            let code: PlayIntegrityUnavailable.Code = failure == .tooLarge ? .unexpectedAnswer : .network
            return .again(after: nil, else: .failure(.init(code, "the token endpoint: \(failure)")))
        } catch {
            return .done(.failure(.init(.unauthenticated, "the service account's key cannot sign")))
        }
        do throws(PlayIntegrityUnavailable) {
            return .done(.success(try AccessToken(status: answer.status, body: answer.body)))
        } catch {
            return error.isTransient ? .again(after: answer.retryAfter, else: .failure(error)) : .done(.failure(error))
        }
    }
}
