internal import AuthContract
internal import AuthService
internal import Foundation
internal import Logging
internal import PlayIntegrity

/// The access token of one service account: asked for once however many need it, renewed before it ends, and not asked for
/// again right after Google refused it.
actor AccessTokens {
    private struct Held {
        let token: AccessToken
        let expiresAt: UnixTime
        var renewAt: UnixTime
    }

    /// Seconds before its end at which a token is renewed, and for which an answer of "no" stands.
    private static let margin: Int64 = 300
    private static let refusalStands: Int64 = 30
    private static let outageStands: Int64 = 2

    nonisolated let account: ServiceAccount
    private let http: ProviderHTTP
    private let deadline: Duration
    private let clock: any ServiceClock
    private let backOff: BackOff
    private let logger: Logger

    private var held: Held?
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

    /// A token that is good for some minutes yet.
    ///
    /// - Parameter rejected: one that Google did not accept; of those who bring the same one, one causes a request.
    func token(insteadOf rejected: AccessToken? = nil) async throws(PlayIntegrityUnavailable) -> AccessToken {
        if let rejected, let held, held.token.value == rejected.value { self.held = nil }
        let now = clock.now
        if let held, now < held.renewAt { return held.token }
        if let failure, now < failure.until {
            return try usable(at: now, else: failure.error)
        }
        // Not the caller's own task: others wait for it, whatever becomes of this caller. It ends within its deadline.
        let current = fetching ?? Task { await fetch() }
        fetching = current
        switch await current.value {
        case .success(let token): return token
        case .failure(let error): return try usable(at: clock.now, else: error)
        }
    }

    /// A renewal that failed is no reason to drop a token that has not ended.
    private func usable(
        at now: UnixTime, else error: PlayIntegrityUnavailable
    ) throws(PlayIntegrityUnavailable) -> AccessToken {
        guard let held, now + 30 < held.expiresAt else { throw error }
        return held.token
    }

    private func fetch() async -> Result<AccessToken, PlayIntegrityUnavailable> {
        defer { fetching = nil }
        let asked = clock.now
        let result = await backOff.run(within: deadline) { left in await ask(within: left) }
        switch result {
        case .success(let token):
            failure = nil
            let lifetime = token.lifetimeSeconds
            held = Held(
                token: token, expiresAt: asked + lifetime,
                renewAt: asked + max(lifetime - Self.margin, lifetime / 2))
        case .failure(let error):
            failure = (error, clock.now + (error.isTransient ? Self.outageStands : Self.refusalStands))
            logger.warning(
                "no access token from Google",
                metadata: ["service_account": "\(account.clientEmail)", "reason": "\(error)"])
        }
        return result
    }

    private func ask(within limit: Duration) async -> BackOff.Attempt<Result<AccessToken, PlayIntegrityUnavailable>> {
        let answer: ProviderAnswer
        do {
            let time = Date(timeIntervalSince1970: TimeInterval(clock.now.seconds))
            let body = try account.tokenRequestBody(at: time)
            answer = try await http.send(
                ProviderRequest(
                    url: account.tokenURI, headers: [("Content-Type", "application/x-www-form-urlencoded")], body: body,
                    maximumAnswer: AccessToken.maximumAnswer), within: limit)
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
