package import AuthContract
internal import Bytes

/// The named checks that must pass for the service to be ready.
package struct Readiness: Sendable {
    /// One check.
    package struct Check: Sendable {
        let name: String
        let ask: @Sendable () async throws -> String?

        /// A check. `ask` throws `Degraded` if the service refuses some requests, and any other error if the check fails.
        package init(_ name: String, _ ask: @escaping @Sendable () async throws -> Void) {
            self.init(
                name,
                noting: {
                    try await ask()
                    return nil
                })
        }

        private init(_ name: String, noting ask: @escaping @Sendable () async throws -> String?) {
            self.name = name
            self.ask = ask
        }

        /// A check whose `ask` also returns a note for operators, or nil.
        package static func noting(_ name: String, _ ask: @escaping @Sendable () async throws -> String?) -> Self {
            Self(name, noting: ask)
        }
    }

    /// Thrown by a check if the service works but refuses some requests.
    ///
    /// The node stays ready. All nodes are in the same state, so if they were not ready, a load balancer would remove all
    /// of them.
    package struct Degraded: Error, Sendable, Hashable {
        let reason: String
        /// When the state ends; nil: an operator must act.
        let until: UnixTime?

        /// Memberwise initializer.
        package init(_ reason: String, until: UnixTime? = nil) {
            self.reason = reason
            self.until = until
        }
    }

    /// The result of a check.
    struct CheckResult: Sendable {
        let name: String
        /// The reason why the service cannot serve requests; nil: it can.
        var failure: String?
        /// Why, and until when, the service refuses some requests although it works; nil: it refuses none.
        var degraded: Degraded?
        /// What the check says although nothing fails, such as the age of a list.
        var note: String?
    }

    private let checks: [Check]
    private let deadline: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state = Locked(State())
    private let memory: Duration
    /// The check that fails as soon as the service begins to stop.
    private static let accepting = "accepting"

    private struct State: Sendable {
        var isDraining = false
        var remembered: (findings: [CheckResult], until: ContinuousClock.Instant)?
        /// The checks in progress, shared by all callers.
        var running: Task<[CheckResult], Never>?
        /// The checks that have no answer yet.
        var unanswered: Set<String> = []
    }

    /// Memberwise initializer.
    ///
    /// - Parameters:
    ///   - checks: the checks.
    ///   - deadline: the longest time to wait for one check. It must be longer than the deadline of a store.
    package init(_ checks: [Check], deadline: Duration = .seconds(5)) {
        self.init(checks, deadline: deadline, memory: .seconds(1))
    }

    init(
        _ checks: [Check], deadline: Duration, memory: Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.checks = checks
        self.sleep = sleep
        self.deadline = deadline
        self.memory = memory
    }

    /// Makes the check `accepting` fail from now on, because the service begins to stop.
    func beginDraining() { state.withLock { $0.isDraining = true } }

    /// The result of each check, at most a second old, so that frequent callers do not load the stores.
    func findings() async -> [CheckResult] {
        let isDraining = state.withLock(\.isDraining)
        let accepting = CheckResult(name: Self.accepting, failure: isDraining ? "the service is stopping" : nil)
        return [accepting] + (await storesAsked())
    }

    private func storesAsked() async -> [CheckResult] {
        let running: Task<[CheckResult], Never>? = state.withLock { state in
            if let remembered = state.remembered, ContinuousClock.now < remembered.until { return nil }
            if let running = state.running { return running }
            let task = Task { await ask() }
            state.running = task
            return task
        }
        guard let running else { return state.withLock { $0.remembered?.findings ?? [] } }
        return await running.value
    }

    /// Runs all checks concurrently. If a check hangs, the result comes when the deadline of that check has passed.
    private func ask() async -> [CheckResult] {
        let findings = await withTaskGroup(of: (Int, CheckResult).self) { group in
            for (index, check) in checks.enumerated() {
                group.addTask { (index, await self.finding(of: check)) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        state.withLock { state in
            state.remembered = (findings, .now + memory)
            state.running = nil
        }
        return findings
    }

    /// The result of a check. A check that hangs may ignore cancellation, so its task is abandoned. The check is not
    /// started again before that task ends. Otherwise, frequent calls would leave more and more hanging tasks behind.
    private func finding(of check: Check) async -> CheckResult {
        guard state.withLock({ $0.unanswered.insert(check.name).inserted }) else {
            return CheckResult(name: check.name, failure: "it has not answered an earlier question yet")
        }
        return await withCheckedContinuation { continuation in
            let waiting = Locked<CheckedContinuation<CheckResult, Never>?>(continuation)
            @Sendable func give(_ finding: CheckResult) {
                let waiting = waiting.withLock { waiting in
                    defer { waiting = nil }
                    return waiting
                }
                waiting?.resume(returning: finding)
            }
            let timer = Task {
                guard (try? await sleep(deadline)) != nil else { return }
                give(CheckResult(name: check.name, failure: "no answer within \(deadline)"))
            }
            Task {
                var finding = CheckResult(name: check.name)
                do { finding.note = try await check.ask() } catch let degraded as Degraded {
                    finding.degraded = degraded
                } catch {
                    finding.failure = "\(error)"
                }
                state.withLock { _ = $0.unanswered.remove(check.name) }
                timer.cancel()
                give(finding)
            }
        }
    }
}
