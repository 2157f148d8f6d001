package import AuthContract
package import AuthService
internal import NIOConcurrencyHelpers

/// The named checks that must pass for the service to be ready.
package struct Readiness: Sendable {
    /// One check.
    package struct Check: Sendable {
        let name: String
        let ask: @Sendable () async throws -> Void

        /// Throws if the check fails.
        package init(_ name: String, _ ask: @escaping @Sendable () async throws -> Void) {
            self.name = name
            self.ask = ask
        }
    }

    /// The result of a check.
    struct Finding: Sendable {
        let name: String
        /// Nil: the check passed.
        let failure: String?
    }

    private let checks: [Check]
    private let deadline: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state = NIOLockedValueBox(State())
    private let memory: Duration
    /// The check that fails as soon as the service begins to stop.
    private static let accepting = "accepting"

    private struct State: Sendable {
        var isDraining = false
        var remembered: (findings: [Finding], until: ContinuousClock.Instant)?
        /// The checks in progress, shared by all callers.
        var running: Task<[Finding], Never>?
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

    /// The service shuts down: it finishes its requests and is not ready for others.
    func beginDraining() { state.withLockedValue { $0.isDraining = true } }

    /// The result of each check, at most a second old, so that a caller in a loop does not load the stores.
    func findings() async -> [Finding] {
        let isDraining = state.withLockedValue(\.isDraining)
        let accepting = Finding(name: Self.accepting, failure: isDraining ? "the service is stopping" : nil)
        return [accepting] + (await storesAsked())
    }

    private func storesAsked() async -> [Finding] {
        let running: Task<[Finding], Never>? = state.withLockedValue { state in
            if let remembered = state.remembered, ContinuousClock.now < remembered.until { return nil }
            if let running = state.running { return running }
            let task = Task { await ask() }
            state.running = task
            return task
        }
        guard let running else { return state.withLockedValue { $0.remembered?.findings ?? [] } }
        return await running.value
    }

    /// Runs all checks at once. A check that hangs delays the result by one deadline.
    private func ask() async -> [Finding] {
        let findings = await withTaskGroup(of: (Int, Finding).self) { group in
            for (index, check) in checks.enumerated() {
                group.addTask { (index, Finding(name: check.name, failure: await self.failure(of: check))) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        state.withLockedValue { state in
            state.remembered = (findings, .now + memory)
            state.running = nil
        }
        return findings
    }

    /// The reason why a check fails; nil if it passes. A check that hangs may ignore cancellation, so it is left behind. It is
    /// not started again before it ends: a scrape every few seconds must not leave one more behind each time.
    private func failure(of check: Check) async -> String? {
        guard state.withLockedValue({ $0.unanswered.insert(check.name).inserted }) else {
            return "it has not answered an earlier question yet"
        }
        return await withCheckedContinuation { continuation in
            let waiting = NIOLockedValueBox<CheckedContinuation<String?, Never>?>(continuation)
            @Sendable func give(_ failure: String?) {
                let waiting = waiting.withLockedValue { waiting in
                    defer { waiting = nil }
                    return waiting
                }
                waiting?.resume(returning: failure)
            }
            let timer = Task {
                guard (try? await sleep(deadline)) != nil else { return }
                give("no answer within \(deadline)")
            }
            Task {
                var failure: String?
                do { try await check.ask() } catch { failure = "\(error)" }
                state.withLockedValue { _ = $0.unanswered.remove(check.name) }
                timer.cancel()
                give(failure)
            }
        }
    }
}

extension Readiness {
    /// Each store, the service key and the clock.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - stores: its stores.
    ///   - random: makes the values that the checks write and read back.
    ///   - further: checks that the stores' implementation adds.
    package init(
        service: AuthService, stores: AuthService.Stores, random: any RandomSource = SystemRandom(),
        further: [Check] = []
    ) {
        let clock = service.clock
        self.init(
            [
                Check("apps") { _ = try await stores.apps.apps() },
                Check("devices") { _ = try await stores.devices.binding(of: "readiness") },
                Check("challenges") { _ = try await stores.challenges.take(random.bytes(32)) },
                Check("replay") { try await Self.claim(in: stores.replay, at: clock.now, random) },
                Check("audit") { _ = try await stores.audit.events(app: nil, device: nil, before: nil, limit: 1) },
                Check("credentials") { _ = try await stores.credentials.credential("readiness") },
                // Only the service key that sealed the keys opens them.
                Check("service_key") {
                    _ = try await service.apps.records()
                    _ = try await service.signingKeys.keySet()
                },
                Check("trust_anchors") { try await Self.checkAnchors(of: service.apps) },
                Check("clock") { try await Self.compareClock(clock.now, with: stores.audit) },
            ] + further)
    }

    /// The operators' trust anchors. Apple's and Google's are part of the program, and its tests cover them.
    private static func checkAnchors(of apps: AppRegistry) async throws {
        for record in try await apps.records() where record.enabled {
            guard !(record.ios?.trustAnchors ?? []).isEmpty || !(record.android?.trustAnchors ?? []).isEmpty else {
                continue
            }
            do { try apps.check(record) } catch {
                throw StoreError(.unreadable, "the record of \(record.appID) cannot be used: \(error)")
            }
        }
    }

    /// Makes a claim that no request makes: fails if claims cannot be taken, or if history was lost.
    private static func claim(in replay: any ReplayStore, at now: UnixTime, _ random: any RandomSource) async throws {
        let bytes = random.bytes(16)
        let halves = [bytes.prefix(8), bytes.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        let claim = ReplayClaim(high: halves[0], low: halves[1])
        // Dated now, like a request.
        let device = DeviceID(from: random)
        switch try await replay.claim(
            [claim], of: device, timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60)
        {
        case .claimed, .taken: return
        case .historyLost(let retryAfter):
            throw StoreError(.unavailable, "history was lost; requests are refused for another \(retryAfter) s")
        case .expired: throw StoreError(.unavailable, "the clock is behind what was already purged")
        }
    }

    /// A clock that is behind the store's latest event would refuse honest clients and accept old requests.
    private static func compareClock(_ now: UnixTime, with audit: any AuditLog) async throws {
        // Several events, because the last ones may already have the slow clock's dates.
        let events = try await audit.events(app: nil, device: nil, before: nil, limit: 100)
        guard let newest = events.map(\.event.at).max() else { return }
        let behind = newest - now
        guard behind <= 30 else {
            throw StoreError(.unavailable, "the clock is \(behind) s behind the newest audit event")
        }
    }
}
