package import AuthContract
package import AuthService

extension Readiness {
    /// Checks of each store, the service key, the trust anchors and the clock.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - stores: its stores.
    ///   - random: makes the values that the checks write and read back.
    ///   - parts: if several servers store the challenges and replay claims, one prefix for each usable server. A value
    ///     that begins with the prefix is stored on that server.
    ///   - hasServerClock: whether one of `further` compares this node's clock with the one of a server that all nodes
    ///     use. If so, that check judges this node's clock, and audit events that are dated later than now mean that
    ///     another clock was ahead.
    ///   - further: checks that the stores' implementation adds.
    package init(
        service: AuthService, stores: AuthService.Stores, random: any RandomSource = SystemRandom(),
        parts: @escaping @Sendable () -> [[UInt8]] = { [] }, hasServerClock: Bool = false, further: [Check] = []
    ) {
        let clock = service.clock
        self.init(
            [
                Check("apps") {
                    let unreadable = try await service.apps.readableRecords().unreadable
                    guard unreadable.isEmpty else {
                        throw Degraded("records that cannot be read: \(unreadable.map(\.text).joined(separator: ", "))")
                    }
                },
                Check("devices") { _ = try await stores.devices.binding(of: "readiness") },
                Check("challenges") {
                    try await Self.ask(parts(), random) { _ = try await stores.challenges.take($0.bytes(32)) }
                },
                Check("replay") {
                    let window = await service.apps.widestFutureWindow()
                    try await Self.ask(parts(), random) {
                        try await Self.claim(in: stores.replay, at: clock.now, futureWindow: window, $0)
                    }
                },
                Check("audit") { _ = try await stores.audit.events(app: nil, device: nil, before: nil, limit: 1) },
                Check("credentials") { _ = try await stores.credentials.credential("readiness") },
                // Only the service key that sealed the signing keys can open them.
                Check("service_key") {
                    _ = try await service.apps.readableRecords()
                    let unreadable = try await service.signingKeys.unreadable()
                    guard unreadable.isEmpty else {
                        let ids = unreadable.joined(separator: ", ")
                        throw Degraded("signing keys that cannot be opened: \(ids). Revoke them")
                    }
                },
                Check("trust_anchors") { try await Self.checkAnchors(of: service) },
                Check("clock") {
                    try await Self.compareClock(clock.now, with: stores.audit, isComparedWithServer: hasServerClock)
                },
            ] + further)
    }

    /// Probes each part of a store, such as each of several servers. Throws `Degraded` if only some parts work, or if a
    /// part is degraded itself. If no part works, throws the failure of one of them.
    ///
    /// - Parameter parts: for each part, the prefix of the values that it stores. If it is empty, the store has one part.
    static func ask(
        _ parts: [[UInt8]], _ random: any RandomSource,
        _ probe: @escaping @Sendable (any RandomSource) async throws -> Void
    ) async throws {
        let starts = parts.isEmpty ? [[]] : parts
        let errors = await withTaskGroup(of: (any Error)?.self, returning: [any Error].self) { group in
            for start in starts {
                group.addTask {
                    do {
                        try await probe(RandomTail(start: start, random: random))
                        return nil
                    } catch { return error }
                }
            }
            return await group.reduce(into: []) { if let error = $1 { $0.append(error) } }
        }
        let degraded = errors.compactMap { $0 as? Degraded }
        if let failure = errors.first(where: { !($0 is Degraded) }) {
            guard errors.count - degraded.count < starts.count else { throw failure }
            throw Degraded("\(errors.count - degraded.count) of \(starts.count) parts cannot be used: \(failure)")
        }
        if let longest = degraded.max(by: { ($0.until ?? UnixTime(.max)) < ($1.until ?? UnixTime(.max)) }) {
            throw longest
        }
    }

    /// Judges a store that all nodes share. Throws `Degraded` in place of a failure if some of its parts, such as servers, still work:
    /// no client of an unready node could use those parts.
    ///
    /// - Parameters:
    ///   - trouble: why a part cannot be used; nil: every part can.
    ///   - unusable: the share of the devices whose part cannot be used, from 0 to 1.
    ///   - historyLost: the seconds until a request dated now can be judged in every usable part; nil: it can be judged
    ///     now.
    package static func judge(
        _ trouble: StoreError?, unusable: Double, historyLost: Int64?, at now: UnixTime
    ) throws {
        if let trouble {
            guard unusable < 1 else { throw trouble }
            throw Degraded("requests of about \(max(1, Int(unusable * 100))) % of the devices are refused: \(trouble)")
        }
        if let historyLost { throw Degraded.historyLost(until: now + historyLost) }
    }

    /// Random bytes after a fixed prefix.
    private struct RandomTail: RandomSource {
        let start: [UInt8]
        let random: any RandomSource

        func bytes(_ count: Int) -> [UInt8] { start.prefix(count) + random.bytes(max(0, count - start.count)) }
    }

    /// Checks the operators' trust anchors. Apple's and Google's are built in, and tests cover them. Unusable anchors of one app do
    /// not affect other apps, so the check is then degraded and does not fail.
    private static func checkAnchors(of service: AuthService) async throws {
        let roots = service.roots
        if let expired = roots.expired.first ?? roots.added.first(where: { $0.notAfter < service.clock.now }) {
            throw Degraded("\(expired.use.rawValue): \(expired.subject) expired at \(expired.notAfter.iso8601)")
        }
        let apps = service.apps
        for record in try await apps.readableRecords().records where record.enabled {
            guard !(record.ios?.trustAnchors ?? []).isEmpty || !(record.android?.trustAnchors ?? []).isEmpty else {
                continue
            }
            do { try apps.check(record) } catch {
                throw Degraded("the record of \(record.appID) cannot be used: \(error)")
            }
        }
    }

    /// Makes a random replay claim (the record of a used nonce or signature) as a test. Throws `Degraded` while the
    /// service refuses requests dated now, because the store lost earlier claims. Throws another error if claims cannot
    /// be made.
    ///
    /// - Parameter futureWindow: the widest future window of the apps: how far ahead a request may be dated. After a
    ///   loss, the app with this window refuses requests for the longest time.
    private static func claim(
        in replay: any ReplayStore, at now: UnixTime, futureWindow: Int64, _ random: any RandomSource
    ) async throws {
        let bytes = random.bytes(16)
        let halves = [bytes.prefix(8), bytes.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        let claim = ReplayClaim(high: halves[0], low: halves[1])
        // The claim is dated now, like that of a new request.
        let device = DeviceID(from: random)
        switch try await replay.claim(
            [claim], of: device, timestamp: now, expiresAt: now + ReplayClaim.life, now: now, futureWindow: futureWindow
        )
        {
        case .claimed, .taken: return
        case .historyLost(let retryAfter): throw Degraded.historyLost(until: now + retryAfter)
        case .expired: throw StoreError(.unavailable, "the clock is behind what was already purged")
        }
    }

    private static func compareClock(
        _ now: UnixTime, with audit: any AuditLog, isComparedWithServer: Bool
    ) async throws {
        switch try await NewestEvents(of: audit, at: now) {
        case .agree: return
        case .clockBehind(let seconds) where !isComparedWithServer:
            throw StoreError(.unavailable, "the clock is \(seconds) s behind the newest audit event")
        case .clockBehind(let seconds), .someAhead(let seconds):
            throw Degraded(
                "a clock was ahead: audit events are dated up to \(seconds) s later than now", until: now + seconds)
        }
    }
}

extension Readiness.Degraded {
    /// The state after the replay store lost claims: until this time, the service refuses requests that are dated in the lost interval.
    package static func historyLost(until: UnixTime) -> Self {
        Self("history was lost; requests that a copy could repeat are refused", until: until)
    }
}
