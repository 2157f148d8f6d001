public import AppAttest
public import AuthContract
public import Logging
internal import StrictJSON
internal import Verification

/// Exchanges receipts in the background, one at a time. The store finds the due receipts, and the policy sets the rate.
///
/// Several jobs may run on one store. Each due receipt is taken by only one of them.
public struct ReceiptRefreshJob: Sendable {
    private let store: any ReceiptStore
    private let exchange: any ReceiptExchange
    private let policy: ReceiptRefreshPolicy
    private let verifier: ReceiptVerifier
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let pause: @Sendable (Duration) async throws -> Void
    private let logger: Logger

    /// A job over a store.
    ///
    /// - Parameters:
    ///   - store: the receipts and when each is due.
    ///   - exchange: Apple's server.
    ///   - policy: the rate.
    ///   - verifier: verifies new receipts. The default accepts receipts under Apple's roots, at most 5 minutes old.
    ///   - clock: the time by which receipts are due.
    ///   - random: jitters the pauses.
    ///   - pause: waits. Throws if the task is cancelled.
    ///   - logger: receives refreshes and failures.
    public init(
        store: any ReceiptStore, exchange: any ReceiptExchange, policy: ReceiptRefreshPolicy = ReceiptRefreshPolicy(),
        verifier: ReceiptVerifier = ReceiptVerifier(), clock: any ServiceClock = SystemClock(),
        random: any RandomSource = SystemRandom(),
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        logger: Logger = Logger(label: "synheart.receipts")
    ) {
        self.store = store
        self.exchange = exchange
        self.policy = policy
        self.verifier = verifier
        self.clock = clock
        self.random = random
        self.pause = pause
        self.logger = logger
    }

    /// What `run` adds to the exchange: each app's threshold of the risk metric, a recorder of refused receipts, and another verifier.
    private struct Watch: Sendable {
        let threshold: @Sendable (AuthContract.AppID) async -> Int?
        let record: @Sendable (_ proof: @escaping @Sendable () -> RefusedProof, _ due: DueReceipt) async -> Void
        /// The verifier that also trusts the added roots; nil: the job uses its own verifier.
        let verifier: @Sendable () -> ReceiptVerifier?
    }

    /// Runs until the task is cancelled. Flags devices by the apps' thresholds, records refused receipts for apps that record
    /// refused proofs, and trusts the service's added roots.
    public func run(for service: AuthService) async {
        await run(
            Watch(
                threshold: { app in ((try? await service.apps.record(app)) ?? nil)?.ios?.flagRiskMetricAbove },
                record: { proof, due in await service.record(proof, of: due) },
                verifier: { service.roots.receiptVerifier }))
    }

    /// Runs until the task is cancelled.
    ///
    /// - Parameter threshold: the app's `flag_risk_metric_above`: a metric above it causes a security event, and nothing else.
    public func run(
        flaggingAbove threshold: @escaping @Sendable (AuthContract.AppID) async -> Int? = { _ in nil }
    ) async {
        await run(Watch(threshold: threshold, record: { _, _ in }, verifier: { nil }))
    }

    private func run(_ watch: Watch) async {
        var streak = 0
        while !Task.isCancelled {
            let wait = await turn(watch, &streak)
            do { try await pause(wait) } catch { return }
        }
    }

    /// Exchanges one receipt, if one is due.
    ///
    /// - Returns: the pause before the next exchange.
    private func turn(_ watch: Watch, _ streak: inout Int) async -> Duration {
        do throws(StoreError) {
            let now = clock.now
            guard let due = try await store.takeDueReceipt(at: now, lease: now + ReceiptRefreshRules.lease) else {
                return .seconds(60 * (1 + random.fraction() / 4))
            }
            let answer = await ask(due)
            // The answer to a cancelled request is meaningless. The receipt is due again after its lease.
            guard !Task.isCancelled else { return .zero }
            let rules = ReceiptRefreshRules(verifier: watch.verifier() ?? verifier)
            let decision = rules.decide(answer, on: due, at: clock.now, jitter: random.fraction())
            try await record(decision, of: due, flaggingAbove: await watch.threshold(due.appID))
            if let proof = decision.proof { await watch.record(proof, due) }
            return wait(after: decision.next, answer, &streak)
        } catch {
            logger.warning("receipts: the store failed", metadata: ["reason": "\(error)"])
            return backOff(atLeast: nil, &streak)
        }
    }

    private func ask(_ due: DueReceipt) async -> ReceiptAnswer {
        guard let appID = due.attestedAppID, let environment = due.environment else { return .badReceipt }
        return await exchange.exchange(due.receipt, appID: appID, environment: environment)
    }

    private func record(
        _ decision: ReceiptRefreshRules.Decision, of due: DueReceipt, flaggingAbove threshold: Int?
    ) async throws(StoreError) {
        var event: AuditEvent?
        if let threshold, let metric = decision.change.replacement?.riskMetric, metric > threshold {
            logger.notice(
                "a risk metric is above the app's threshold",
                metadata: ["app": "\(due.appID)", "metric": "\(metric)", "threshold": "\(threshold)"])
            event = AuditEvent(
                .securityEvent, at: clock.now, actor: "service", appID: due.appID, deviceID: due.deviceID,
                detail: JSONObject([
                    ("kind", "app_attest_risk_metric"), ("metric", .integer(metric)),
                    ("threshold", .integer(threshold)),
                    ("before", due.evidence.riskMetric.map { .integer($0) } ?? .null),
                ]))
        }
        let recorded = try await store.record(decision.change, of: due, recording: event)
        logger.debug(
            "receipt exchanged",
            metadata: [
                "app": "\(due.appID)", "outcome": "\(decision.change.refresh.outcome ?? "")", "recorded": "\(recorded)",
            ])
    }

    // MARK: Pace

    private func wait(after next: ReceiptRefreshRules.Next, _ answer: ReceiptAnswer, _ streak: inout Int) -> Duration {
        switch next {
        case .withoutPause: return .zero
        case .goOn:
            streak = 0
            // Jitter only lengthens the pause, because `requestsPerHour` is an upper bound and not an average.
            return .seconds(3600 / Double(policy.requestsPerHour) * (1 + random.fraction() / 4))
        case .backOff(let seconds):
            if streak == 0 {
                let level: Logger.Level = answer == .unauthorized ? .error : .warning
                logger.log(level: level, "receipts: waiting", metadata: ["answer": "\(answer.summary)"])
            }
            return backOff(atLeast: seconds, &streak)
        }
    }

    private static let pauses = BackOffPause(first: 60, longest: 3600)

    /// The pause after a failure: first 30 to 60 seconds, then up to an hour, or a longer one that Apple asks for, up to six hours.
    private func backOff(atLeast seconds: Int64?, _ streak: inout Int) -> Duration {
        let own = Self.pauses.seconds(after: streak, random)
        streak += 1
        return .seconds(max(own, Double(min(max(seconds ?? 0, 0), 6 * 3600))))
    }
}

extension ReceiptAnswer {
    /// The summary for the log. It never contains a receipt.
    fileprivate var summary: String {
        switch self {
        case .receipt: "receipt"
        case .tooEarly: "304 too early"
        case .badReceipt: "400 bad receipt"
        case .unauthorized: "401: the DeviceCheck key is not accepted; check key id, team id and clock"
        case .noData: "404 no data"
        case .tooManyRequests: "429 too many requests"
        case .unavailable(let reason, _): reason
        case .noKey: "no key for the App ID's prefix"
        }
    }
}
