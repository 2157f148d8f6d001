internal import AuthContract

/// The identity of one app on this device. Runs one operation at a time. A second caller joins a running registration, rotation
/// or token request that serves it too.
///
/// An operation runs in its own task, so that it survives the cancellation of its caller.
actor DeviceIdentity {
    nonisolated let context: IdentityContext
    private let resets: Resets
    private var registration: RunningOperation<Registration>?
    private var rotation: RunningOperation<KeyRotation>?
    private var maintenance: Task<Void, Never>?
    private var failedMaintenance: FailedMaintenance?
    private var tokenFetches: [String?: TokenFetch] = [:]
    private var tokens = TokenCache()
    /// The number of resets so far. A `rotate` that began before a reset must not begin another rotation after the reset.
    private var resetCount = 0
    /// Whether the service refused a new App Attest key in place of a lost one.
    private var isRebindRefused = false

    private typealias Operation<Value: Sendable> = RunningOperation<Value>.Work

    init(context: IdentityContext, resets: Resets) {
        self.context = context
        self.resets = resets
    }

    func register(joins: Bool) async throws(SynheartAuthError) -> Registration {
        // Wait for a running reset, so that this call does not return an identity that the reset is about to delete. A reset
        // continues even if its caller was cancelled.
        try await resets.wait(for: context.appID)
        if let registration {
            guard joins else {
                throw SynheartAuthError(.registrationInProgress, "a registration of this app is in progress")
            }
            return try await Self.value(of: registration.work)
        }
        let backOff = BackOff(context.sleeper)
        let task = Operation<Registration> {
            let result = await Self.result { [context] () async throws(SynheartAuthError) in
                if let existing = try await context.existingRegistration(try await context.ledger.load()) {
                    return existing
                }
                return try await RegistrationCycle(context: context, backOff: backOff).run()
            }
            if registration?.backOff === backOff { registration = nil }
            if case .success(let value) = result, value.status == .alreadyRegistered { maintainInBackground() }
            return result
        }
        registration = RunningOperation(task, backOff)
        return try await Self.value(of: task)
    }

    /// Rotates. Joins a running rotation if that achieves at least this goal. Otherwise begins a new rotation after the running one:
    /// waits until a rotation for a compromise has ended, but ends any other rotation at its next pause.
    ///
    /// If a second rotation replaces the one that this call waits for, this call joins the second one, or rotates after it. This
    /// call also rotates if the joined rotation was to bind an App Attest key, and only the binding failed.
    func rotate(_ goal: RotationGoal) async throws(SynheartAuthError) -> KeyRotation {
        var next: RunningOperation<KeyRotation>?
        let resetsBefore = resetCount
        while true {
            guard resetCount == resetsBefore else { throw .resetMeanwhile }
            let running: RunningOperation<KeyRotation>
            if let next, next.goal.covers(goal) {
                running = next
            } else if let rotation, rotation.goal.covers(goal) {
                running = rotation
            } else if let rotation, rotation.goal.reason == .compromise {
                guard await rotation.work.valueUnlessCancelled() != nil else { throw .cancelled }
                continue
            } else {
                running = beginRotation(goal)
            }
            do throws(SynheartAuthError) {
                return try await Self.value(of: running.work)
            } catch {
                // Whether a step failed that only the running rotation needs, and not this call: the attestation of a new App Attest
                // key by Apple.
                let failedBeyond =
                    running.goal.rebinds && !goal.rebinds
                    && [.attestationFailed, .attestationUnavailable].contains(error.code)
                guard error.code != .cancelled, running.successor != nil || failedBeyond else { throw error }
                next = running.successor
            }
        }
    }

    /// Begins a rotation in place of the running one.
    private func beginRotation(_ goal: RotationGoal) -> RunningOperation<KeyRotation> {
        let earlier = rotation
        earlier?.backOff.end()
        let earlierTask = earlier?.work
        let backOff = BackOff(context.sleeper)
        let task = Operation<KeyRotation> {
            _ = await earlierTask?.value
            let result = await Self.result { [context] () async throws(SynheartAuthError) in
                try await RotationCycle(context: context, goal: goal, backOff: backOff).run()
            }
            if rotation?.backOff === backOff { rotation = nil }
            return result
        }
        let running = RunningOperation(task, backOff, goal: goal)
        earlier?.successor = running
        rotation = running
        return running
    }

    /// Rotates for the reason that the service demands; without a demand, as scheduled.
    func rotateAsDemanded() async throws(SynheartAuthError) {
        _ = try await rotate(RotationGoal(for: try await context.ledger.load()))
    }

    /// Binds a new App Attest key in place of a lost one, by a rotation.
    ///
    /// - Throws: `ATTESTATION_FAILED` with recovery `reset` if the service accepts no new key.
    func rebind() async throws(SynheartAuthError) {
        if let key = try await context.ledger.load().attestationKey, key.isUsed { return }
        guard !isRebindRefused else { throw .rebindRefused(cause: .assertionKeyLost()) }
        do throws(SynheartAuthError) {
            _ = try await rotate(RotationGoal(rebinds: true))
        } catch {
            // If the service demands a rotation for a compromise, its refusal is not final: after that rotation it may accept a
            // new App Attest key.
            let isCompromised = (try? await context.ledger.load().rotationDemand)?.reason == .compromise
            if error.code == .attestationFailed, error.recovery == .reset, !isCompromised { isRebindRefused = true }
            throw error
        }
    }

    func reset(_ reason: ResetReason) async throws(SynheartAuthError) {
        let task = resets.begin(context.appID) { [context] in
            await Self.result { () async throws(SynheartAuthError) in
                try await context.exclusively { () async throws(SynheartAuthError) in
                    // This reset holds the operation lock, so no other operation is in an attempt. The others wait for the lock or for
                    // their next attempt, and can be ended.
                    await self.endOperations()
                    try await Resetter(context: context).reset(reason)
                }
            }
        }
        tokens = TokenCache()
        isRebindRefused = false
        try await Self.value(of: task)
    }

    /// Ends the operations that wait, so that later callers begin new ones.
    private func endOperations() {
        registration?.backOff.end()
        rotation?.backOff.end()
        (registration, rotation) = (nil, nil)
        resetCount += 1
    }

    /// Whether another key has replaced `key`, whose signature the service refused. If a rotation is unsettled, its new key may
    /// be current on the service, so this function makes one more attempt at it.
    func hasReplaced(_ key: IdentityRecord.KeyReference?) async throws(SynheartAuthError) -> Bool {
        let record = try await context.ledger.load()
        guard record.key == key else { return true }
        guard case .rotation = record.journal else { return false }
        // Make a separate attempt. A running rotation may pause for minutes between its attempts, so do not join it.
        let attempt = Operation<Void> { [context] in
            await Self.result { () async throws(SynheartAuthError) in
                try await context.exclusively { () async throws(SynheartAuthError) in
                    guard case .rotation(let pending) = try await context.ledger.load().journal else { return }
                    _ = try await Rotator(context: context).attempt(RotationGoal(reason: pending.reason))
                }
            }
        }
        try await Self.value(of: attempt)
        return try await context.ledger.load().key != key
    }

    /// Sends one of the SDK's own requests, signed with the current key. If the service refuses the signature and the key has been
    /// replaced, signs and sends again, once.
    ///
    /// - Returns: The answer, and the key that signed.
    func call(
        _ route: Route, body: [UInt8] = []
    ) async throws(SynheartAuthError) -> (answer: ServiceClient.Response, key: IdentityRecord.KeyReference) {
        let first = try await attempt(route, body)
        guard case .failure = first.result, try await hasReplaced(first.key) else {
            return (try first.result.get(), first.key)
        }
        let second = try await attempt(route, body)
        return (try second.result.get(), second.key)
    }

    /// The answer, or the refusal of a signature, and the key that signed.
    private struct Attempt: Sendable {
        let result: Result<ServiceClient.Response, SynheartAuthError>
        let key: IdentityRecord.KeyReference
    }

    /// Sends a request once, signed with the current key. Throws every failure but a refused signature.
    private func attempt(_ route: Route, _ body: [UInt8]) async throws(SynheartAuthError) -> Attempt {
        try await context.withCurrentKey { [context] record, key throws(SynheartAuthError) in
            do throws(SynheartAuthError) {
                let answer = try await context.signedCall(route, body: body, record: record, alias: key.alias)
                return Attempt(result: .success(answer), key: key)
            } catch {
                guard error.remedy == .finishRotation else { throw await context.current(error, of: record) }
                return Attempt(result: .failure(error), key: key)
            }
        }
    }

    func maintain() async throws(SynheartAuthError) {
        let record = try await context.ledger.load()
        switch record.journal {
        case .rotation where record.identity == .active:
            _ = try await rotate(RotationGoal(for: record))
        case .disposal:
            try await context.exclusively { [context] () async throws(SynheartAuthError) in
                try await Rotator(context: context).disposeLeftover()
            }
        default: break
        }
        let now = record.clockOffset.serverTime(atLocal: context.clock.wallMilliseconds)
        if RotationSchedule.isDue(try await context.ledger.load(), at: now) { try await rotateAsDemanded() }
    }

    /// Starts `maintain` unless it runs already, or failed in this process for the same cause less than an hour ago.
    func maintainInBackground() {
        guard context.configuration.rotatesAutomatically, maintenance == nil else { return }
        maintenance = Task {
            defer { maintenance = nil }
            guard let record = try? await context.ledger.load() else { return }
            let cause = MaintenanceCause(deviceID: record.deviceID, demand: record.rotationDemand)
            guard failedMaintenance?.forbids(cause, at: context.clock.continuous) != true else { return }
            let hasFailed = (try? await maintain()) == nil
            failedMaintenance = hasFailed ? FailedMaintenance(cause: cause, at: context.clock.continuous) : nil
        }
    }

    func token(_ audience: String?) async throws(SynheartAuthError) -> DeviceToken {
        let now = context.clock.continuous
        let key = try await context.ledger.load().signingKey()
        let held = tokens[audience].flatMap { $0.thumbprint == key.thumbprint ? $0 : nil }
        if let held, held.isFresh(now) { return DeviceToken(token: held.token, remaining: held.remaining(now)) }
        do throws(SynheartAuthError) {
            if let fetch = tokenFetches[audience], fetch.thumbprint == key.thumbprint {
                return try await Self.value(of: fetch.task)
            }
            let task = Operation<DeviceToken> {
                let result = await Self.result { () async throws(SynheartAuthError) in
                    try await self.fetchToken(audience)
                }
                if tokenFetches[audience]?.thumbprint == key.thumbprint { tokenFetches[audience] = nil }
                return result
            }
            tokenFetches[audience] = TokenFetch(task: task, thumbprint: key.thumbprint)
            return try await Self.value(of: task)
        } catch {
            // The token is past half of its life but still valid, and the service did not answer.
            let remaining = held?.remaining(context.clock.continuous) ?? .zero
            guard error.code == .networkError, let held, remaining > .zero else { throw error }
            return DeviceToken(token: held.token, remaining: remaining)
        }
    }

    private func fetchToken(_ audience: String?) async throws(SynheartAuthError) -> DeviceToken {
        var seen: Set<RetryTable.Remedy> = []
        while true {
            do throws(SynheartAuthError) {
                let (answer, key) = try await call(.token, body: TokenRequest(audience: audience).bytes)
                let response = try answer.read(TokenResponse.self)
                let life = Duration.seconds(min(max(response.expiresIn, 0), 600))
                tokens[audience] = TokenCache.Entry(
                    token: response.token, fetchedAt: answer.sentAt, life: life, thumbprint: key.thumbprint)
                return DeviceToken(
                    token: response.token, remaining: answer.sentAt + life - context.clock.continuous)
            } catch {
                guard seen.insert(error.remedy).inserted else {
                    guard error.remedy == .rotate else { throw error }
                    throw SynheartAuthError(.rotationFailed, "the service calls a new key too old", cause: error)
                }
                switch error.remedy {
                case .rotate: try await rotateAsDemanded()
                case .rebind: try await rebind()
                default: throw error
                }
            }
        }
    }

    private static func result<Value: Sendable>(
        _ body: @Sendable () async throws(SynheartAuthError) -> Value
    ) async -> Result<Value, SynheartAuthError> {
        do throws(SynheartAuthError) { return .success(try await body()) } catch { return .failure(error) }
    }

    /// The result of an operation. Cancelling the caller ends its wait; the operation continues.
    private static func value<Value: Sendable>(of operation: Operation<Value>) async throws(SynheartAuthError) -> Value
    {
        guard let result = await operation.valueUnlessCancelled() else { throw .cancelled }
        return try result.get()
    }
}
