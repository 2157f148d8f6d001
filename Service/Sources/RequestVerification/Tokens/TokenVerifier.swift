package import AuthContract

/// Verifies tokens of one issuer, without a request to the service for each token. Create one for each process and share it.
public final class TokenVerifier: Sendable {
    private let rules: TokenRules
    private let keys: KeySet
    private let now: @Sendable () -> UnixTime
    private let http: ServiceHTTP

    /// A verifier with its own connection for the keys.
    ///
    /// - Throws: `VerifierConfigurationError` for a configuration that cannot work.
    public convenience init(_ configuration: TokenVerifierConfiguration) throws(VerifierConfigurationError) {
        let start = ContinuousClock.now
        try self.init(configuration, uptime: { ContinuousClock.now - start }, now: { .current })
    }

    /// A verifier for tests, with other clocks.
    ///
    /// - Parameters:
    ///   - exchange: reads the keys. If it is nil, the verifier reads them over HTTP.
    ///   - uptime: a time that never goes backwards, for the age of the keys.
    ///   - now: the time, for the life of tokens.
    package init(
        _ configuration: TokenVerifierConfiguration, exchange: RequestVerifier.Exchange? = nil,
        uptime: @escaping @Sendable () -> Duration, now: @escaping @Sendable () -> UnixTime
    ) throws(VerifierConfigurationError) {
        let url = try configuration.requireKeySetURL()
        let http = ServiceHTTP(timeout: configuration.timeout, connections: 1)
        rules = TokenRules(configuration)
        keys = KeySet(
            url: url, exchange: exchange ?? { try await http.exchange($0) }, uptime: uptime,
            logger: configuration.logger)
        self.now = now
        self.http = http
    }

    /// Closes the connection. Afterwards, the cached keys are used until they expire, and for one more hour.
    public func shutdown() async { await http.shutdown() }

    /// Verifies a token.
    ///
    /// - Parameter token: the value of `Authorization`, without the word `Bearer`.
    /// - Throws: `TokenError.refused` for a token that is not valid here, `TokenError.unavailable` if the keys cannot be read.
    public func verify(_ token: String) async throws(TokenError) -> DeviceToken {
        let unverified = try rules.read(token)
        guard let key = try await keys.key(unverified.keyID) else { throw .refused("an unknown kid") }
        return try rules.verify(unverified, with: key, at: now())
    }
}
