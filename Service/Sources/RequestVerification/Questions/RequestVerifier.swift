package import AuthContract
internal import Foundation
internal import Logging

/// Asks the auth service who signed a request. Create one for each process and share it.
public final class RequestVerifier: Sendable {
    /// Sends one request to the service, within a deadline.
    package typealias Exchange = @Sendable (ServiceRequest) async throws -> ServiceResponse

    /// The largest body that is verified, in bytes.
    public let bodyLimit: Int
    private let rules: QuestionRules
    private let attempts: Int
    private let logger: Logger
    /// Makes the request for a question. This is a closure that captures the credential, so that no dump of the verifier shows
    /// the credential.
    private let asking: @Sendable (_ question: [UInt8]) -> ServiceRequest
    private let exchange: Exchange
    private let pause: @Sendable (Duration) async throws -> Void
    private let http: ServiceHTTP

    /// A verifier with its own connections.
    ///
    /// - Throws: `VerifierConfigurationError` for a configuration that cannot work.
    public convenience init(_ configuration: RequestVerifierConfiguration) throws(VerifierConfigurationError) {
        try self.init(configuration, pause: { try await Task.sleep(for: $0) }, now: { .current })
    }

    /// A verifier for tests, with other pauses and another clock.
    ///
    /// - Parameter exchange: sends a request to the service and returns the answer; nil: over HTTP.
    package init(
        _ configuration: RequestVerifierConfiguration, exchange: Exchange? = nil,
        pause: @escaping @Sendable (Duration) async throws -> Void, now: @escaping @Sendable () -> UnixTime
    ) throws(VerifierConfigurationError) {
        try configuration.requireRanges()
        let url = try configuration.serviceOrigin().description + Route.verify.rawValue
        let headers = HeaderFields([
            ("Authorization", "Bearer \(configuration.credential)"), ("Content-Type", "application/json"),
        ])
        rules = try QuestionRules(configuration, now: now)
        bodyLimit = configuration.bodyLimit
        attempts = configuration.attempts
        logger = configuration.logger
        asking = { ServiceRequest(url: url, headers: headers, body: $0) }
        let http = ServiceHTTP(timeout: configuration.timeout, connections: configuration.connections)
        self.http = http
        self.exchange = exchange ?? { try await http.exchange($0) }
        self.pause = pause
    }

    /// Closes the connections. Afterwards, requests about which the service must be asked get
    /// ``VerificationAnswer/unavailable(_:reason:)``.
    public func shutdown() async { await http.shutdown() }

    /// Judges a request. Call it once for each request: a second call for the same request is refused as a replay.
    public func verify(_ request: ReceivedRequest) async -> VerificationAnswer {
        let id = Self.newID()
        let question: VerifyRequest
        do { question = try rules.question(about: request, id: id) } catch { return .refused(error) }
        let answer: VerificationAnswer
        switch await ask(asking(question.bytes)) {
        case .success(let response): answer = rules.answer(response, to: request, id: id)
        case .failure(let failure):
            answer = rules.unavailable(id, "the service did not answer: \(failure.reason)", isOutage: true)
        }
        // Log only if the caller was not cancelled, because a cancellation is not a failure of the service.
        if case .unavailable(let refusal, let reason) = answer, !Task.isCancelled {
            // If the service has no outage, log only a warning: any client can name an app that the credential does not cover.
            logger.log(
                level: refusal.isOutage ? .error : .warning, "a request could not be verified",
                metadata: ["reason": "\(reason)"])
        }
        return answer
    }

    /// The answer to a request whose body is longer than ``bodyLimit``, and was not read completely.
    public func bodyTooLarge() -> RefusalAnswer { rules.bodyTooLarge(Self.newID()) }

    private struct NoAnswer: Error {
        let reason: String
    }

    /// Asks until there is a final answer, or until all attempts are used. The question's id makes a retry safe.
    private func ask(_ question: ServiceRequest) async -> Result<ServiceResponse, NoAnswer> {
        var last = Result<ServiceResponse, NoAnswer>.failure(NoAnswer(reason: "cancelled"))
        for attempt in 0..<attempts {
            // The pauses are 0.1 s, 0.2 s and so on, up to 1.6 s.
            if attempt > 0, (try? await pause(.milliseconds(50 << min(attempt, 5)))) == nil { break }
            do {
                let response = try await exchange(question)
                last = .success(response)
                // An answer with Retry-After is final: the wait that it asks for is longer than the pauses here.
                if response.status < 500 || response.retryAfter != nil { break }
            } catch {
                if Task.isCancelled { break }
                last = .failure(NoAnswer(reason: String("\(error)".prefix(200))))
            }
        }
        return last
    }

    private static func newID() -> String { RandomUUID(from: SystemRandom()).text }
}

extension UnixTime {
    /// The time of the system's clock.
    static var current: UnixTime { UnixTime(Int64(Date().timeIntervalSince1970)) }
}
