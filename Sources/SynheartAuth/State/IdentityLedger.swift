internal import AuthContract

/// Reads and changes the record of one identity. It is the only code that can persist a change, by applying an event.
struct IdentityLedger: Sendable {
    let appID: AppID
    let authOrigin: String
    /// Earlier origins of the same auth service.
    let aliases: Set<String>
    let storage: any RecordStorage
    let calls: BlockingCalls
    let keyCalls: BlockingCalls
    let runningTime: any RunningTime
    let sleeper: any Sleeper
    let log: IdentityLog
    let changes: StateChanges
    let suspicions: RecordSuspicions

    private var name: RecordName { RecordName(appID) }

    /// Reads the record; a blank one if there is none. Throws for the record of another auth service.
    func load() async throws(SynheartAuthError) -> IdentityRecord {
        let record = try await loadOfAnyOrigin()
        guard let origin = record.authOrigin, origin != authOrigin else { return record }
        try checkOrigin(of: record)
        let move = IdentityEvent.authOriginMoved(to: authOrigin)
        do throws(SynheartAuthError) {
            // Store the new origin at once: a later version of the app may no longer list the earlier origin as an alias.
            return try await apply(move)
        } catch {
            // If the record cannot be written now, as on a full disk, signing goes on. The next load tries again.
            guard error.recovery == .retry else { throw error }
            return try IdentityReducer.reduce(record, move)
        }
    }

    /// Whether the record belongs to the auth service, under its present name or an earlier one.
    func isOurs(_ record: IdentityRecord) -> Bool {
        record.authOrigin.map { $0 == authOrigin || aliases.contains($0) } ?? true
    }

    private func checkOrigin(of record: IdentityRecord) throws(SynheartAuthError) {
        guard isOurs(record) else {
            let other = record.authOrigin ?? "another auth service"
            throw SynheartAuthError(
                .recordOfAnotherService,
                "the identity belongs to \(other), not to \(authOrigin): reset it, or if the service has moved, name its earlier "
                    + "origin as an alias")
        }
    }

    /// Reads the record, even one of another auth service, so that it can be reset.
    func loadOfAnyOrigin() async throws(SynheartAuthError) -> IdentityRecord {
        var attempt = 0
        while true {
            switch await reading() {
            case .found(let bytes): return try await decode(bytes)
            case .absent: return IdentityRecord(appID: appID)
            case .unavailable(let error) where error.saysAbsent:
                try await believe(.absent, "the record seems absent", error)
                return IdentityRecord(appID: appID)
            case .unavailable(let error):
                if error.isMisconfigured { throw .storage("the record was not read", error) }
                guard error != Self.noAnswer, let delay = RetryPolicy.storage.delay(after: attempt, random: nil) else {
                    throw SynheartAuthError(
                        .recordUnavailable, "the record cannot be read now: \(error.reason)", cause: error)
                }
                try await sleeper.pause(delay, .retry)
                attempt += 1
            }
        }
    }

    /// Applies an event to the current record and persists the result.
    @discardableResult
    func apply(_ event: IdentityEvent) async throws(SynheartAuthError) -> IdentityRecord {
        try HeldLock.operation?.check()
        let lock = try await lock(.record)
        defer { lock.release() }
        let before = try await loadOfAnyOrigin()
        if !isReset(event) { try checkOrigin(of: before) }
        let after: IdentityRecord
        do throws(SynheartAuthError) {
            after = try IdentityReducer.reduce(before, event)
        } catch {
            log.failure(error)
            throw error
        }
        guard after != before else { return after }
        let (storage, name, bytes) = (storage, name, after.bytes)
        do throws(StorageError) {
            try await call(.writeRecord) { () throws(StorageError) in try storage.write(bytes, to: name) }
        } catch {
            throw .storage("the record was not written", error)
        }
        if after.state != before.state { announce(before.state, after) }
        return after
    }

    /// Removes the record, as the last step of a reset. A copy of an unreadable record stays.
    func clear() async throws(SynheartAuthError) {
        try HeldLock.operation?.check()
        let lock = try await lock(.record)
        defer { lock.release() }
        let (storage, name) = (storage, name)
        do throws(StorageError) {
            try await call(.removeRecord) { () throws(StorageError) in try storage.remove(name) }
        } catch {
            throw .storage("the record was not removed", error)
        }
    }

    /// A lock's scope: `operation` while an operation runs, `record` while a change is made.
    enum LockScope: String, Sendable {
        case operation, record
    }

    /// Takes the lock. Waits at most 30 seconds until the system grants time to run in the background, and then at most
    /// about two minutes for the lock.
    func lock(_ scope: LockScope) async throws(SynheartAuthError) -> HeldLock {
        let held = HeldLock(guarding: [keyCalls, calls], isOperation: scope == .operation)
        let time = runningTime.begin { held.expire() }
        held.cover(time)
        do throws(SynheartAuthError) {
            var isGranted = time.isGranted
            if isGranted == nil { isGranted = await withDeadline(Self.timeLimit, sleeper) { await time.answer() } }
            guard isGranted == true, held.keep(try await takeLock(scope)) else { throw HeldLock.isSuspending }
        } catch {
            held.drop()
            throw error
        }
        return held
    }

    /// The limit of the wait for the system's answer about running time. Usually the system answers at once.
    private static let timeLimit = Duration.seconds(30)

    private func takeLock(_ scope: LockScope) async throws(SynheartAuthError) -> any StorageLock {
        let (storage, name) = (storage, name)
        for _ in 0..<Self.lockAttempts {
            do throws(StorageError) {
                // A write or removal that hangs, and that the SDK no longer waits for, keeps the lock until it returns.
                if calls.hasChangeLeftBehind { throw Self.noAnswer }
                let lock = try await call(
                    .lockRecord, unclaimed: { $0?.release() },
                    { () throws(StorageError) in try storage.lock(name, for: scope.rawValue) })
                if let lock { return lock }
            } catch {
                if error.isMisconfigured || error.isFull { throw .storage("the record was not locked", error) }
                throw SynheartAuthError(
                    .recordLocked, "the record cannot be locked: \(error.reason)", cause: error)
            }
            try await sleeper.pause(Self.lockPause, .turn)
        }
        throw SynheartAuthError(.recordLocked, "another process holds the record")
    }

    private static let lockPause = Duration.milliseconds(20)
    private static let lockAttempts = 6_000

    private func reading() async -> StorageReading {
        let (storage, name) = (storage, name)
        do throws(StorageError) {
            return try await call(.readRecord) { () throws(StorageError) in storage.read(name) }
        } catch {
            return .unavailable(error)
        }
    }

    /// Calls the storage once, on a thread outside Swift's thread pool.
    private func call<Value: Sendable>(
        _ kind: BlockingCall, unclaimed: @escaping @Sendable (Value) -> Void = { _ in },
        _ body: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws(StorageError) -> Value {
        let ending = await calls.run(
            kind, limit: .provider(sleeper), unclaimed: { if case .success(let value) = $0 { unclaimed(value) } },
            { () -> Result<Value, StorageError> in
                do throws(StorageError) { return .success(try body()) } catch { return .failure(error) }
            })
        switch ending {
        case .returned(let result): return try result.get()
        case .noAnswer: throw Self.noAnswer
        case .cancelled: throw StorageError("cancelled")
        }
    }

    private static let noAnswer = StorageError("the storage does not answer")

    private func decode(_ bytes: [UInt8]) async throws(SynheartAuthError) -> IdentityRecord {
        let damage: any Error
        do {
            let record = try IdentityRecord(bytes, appID: appID)
            suspicions.end(.absent, .damaged)
            suspicions.note(record)
            return record
        } catch {
            damage = UndecodableRecord(cause: error)
        }
        // Keep a copy for diagnosis. The record itself stays, so that the SDK does not register again as if there had been no identity.
        let (storage, name) = (storage, name)
        let isCopied: Void? = try? await call(.setRecordAside) { () throws(StorageError) in
            try storage.setAside(bytes, of: name)
        }
        suspicions.end(.absent)
        let failure: SynheartAuthError
        if let damage = damage as? UndecodableRecord, damage.cause is NewerRecord {
            failure = SynheartAuthError(
                .recordOfNewerVersion, "a later version of the SDK wrote the record", cause: damage)
        } else {
            do throws(SynheartAuthError) {
                try await believe(.damaged, "the record cannot be decoded", damage)
                if isCopied != nil { return IdentityRecord(damaged: appID) }
                failure = SynheartAuthError(.recordUnavailable, "the damaged record was not copied", cause: damage)
            } catch {
                failure = error
            }
        }
        log.failure(failure)
        throw failure
    }

    /// Returns if a suspicious reading is confirmed: it is the second one, at least two seconds after the first, and the
    /// storage's test record (the canary) shows that the storage works. Otherwise throws.
    private func believe(
        _ kind: RecordSuspicions.Kind, _ what: String, _ cause: any Error
    ) async throws(SynheartAuthError) {
        if let delay = suspicions.ripening(kind) {
            let error = SynheartAuthError(
                .recordSuspected, "\(what), and that is not believed yet", retryAfter: delay, cause: cause)
            if delay == VerdictEngine.interval {
                log.event(.suspicion, .warning, error: error, status: (cause as? StorageError)?.status)
            }
            throw error
        }
        let (storage, name) = (storage, name)
        do throws(StorageError) {
            try await call(.askRecordCanary) { () throws(StorageError) in try storage.checkCanary(of: name) }
        } catch {
            throw SynheartAuthError(.recordUnavailable, "\(what), but the storage is unwell: \(error)", cause: cause)
        }
    }

    private func isReset(_ event: IdentityEvent) -> Bool {
        if case .resetStarted = event { true } else { false }
    }

    /// Announces the change of state that an event causes, although the event was not recorded.
    func announce(_ event: IdentityEvent, of record: IdentityRecord) throws(SynheartAuthError) {
        let after = try IdentityReducer.reduce(record, event)
        if after.state != record.state { announce(record.state, after) }
    }

    private func announce(_ from: IdentityState, _ record: IdentityRecord) {
        let transition = StateTransition(from: from, to: record.state)
        log.transition(transition, record.deviceID)
        changes.send(StateChange(appID: appID.text, transition: transition))
    }
}

/// A record that is damaged, or of a later version.
struct UndecodableRecord: Error {
    let cause: any Error
}

extension SynheartAuthError {
    /// The SDK's error for a failure of the storage.
    fileprivate static func storage(_ what: String, _ error: StorageError) -> SynheartAuthError {
        if error.isMisconfigured { return SynheartAuthError(.notConfigured, error.reason, cause: error) }
        if error.isFull {
            return SynheartAuthError(
                .diskFull, "\(what), because the disk is full: free some space, then try again (\(error.reason))",
                cause: error)
        }
        let message = "\(what): \(error.reason)"
        if error.isTemporary { return SynheartAuthError(.recordLocked, message, cause: error) }
        return SynheartAuthError(.storageError, message, cause: error)
    }
}
