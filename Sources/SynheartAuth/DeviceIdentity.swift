internal import AuthContract

/// One app's identity on this device: lets one operation run at a time, and whoever asks for the same one join it.
actor DeviceIdentity {
    nonisolated let context: IdentityContext
    private var registration: Task<Result<Registration, SynheartAuthError>, Never>?
    private var rotation: Task<Result<KeyRotation, SynheartAuthError>, Never>?

    init(context: IdentityContext) { self.context = context }

    func register(joins: Bool) async throws(SynheartAuthError) -> Registration {
        if let registration {
            guard joins else {
                throw SynheartAuthError(.registrationInProgress, "a registration of this app is in progress")
            }
            return try await registration.value.get()
        }
        // Not the caller's task: others may have joined when the caller is cancelled.
        let task = Task { [context] in
            await Self.result { () async throws(SynheartAuthError) in
                if let existing = try await context.existingRegistration(try await context.ledger.load()) {
                    return existing
                }
                return try await Self.exclusively(context) { () async throws(SynheartAuthError) in
                    try await Registrar(context: context).register()
                }
            }
        }
        registration = task
        let result = await task.value
        registration = nil
        return try result.get()
    }

    func rotate(_ reason: RotationReason) async throws(SynheartAuthError) -> KeyRotation {
        if let rotation { return try await rotation.value.get() }
        let task = Task { [context] in
            await Self.result { () async throws(SynheartAuthError) in try await Self.rotationCycle(context, reason) }
        }
        rotation = task
        let result = await task.value
        rotation = nil
        return try result.get()
    }

    func reset(_ reason: ResetReason) async throws(SynheartAuthError) {
        let task = Task { [context] in
            await Self.result { () async throws(SynheartAuthError) in
                try await Self.exclusively(context) { () async throws(SynheartAuthError) in
                    try await Resetter(context: context).reset(reason)
                }
            }
        }
        try await task.value.get()
    }

    /// Three attempts where the service cannot be asked; between them others may have their turn.
    private static func rotationCycle(
        _ context: IdentityContext, _ reason: RotationReason
    ) async throws(SynheartAuthError) -> KeyRotation {
        let before = try await context.ledger.load()
        for attempt in 0... {
            do throws(SynheartAuthError) {
                return try await exclusively(context) { () async throws(SynheartAuthError) in
                    if let done = try await rotationOfAnother(context, since: before) { return done }
                    return try await Rotator(context: context).attempt(reason)
                }
            } catch {
                guard error.code == .networkError,
                    let delay = RetryPolicy.rotation.delay(
                        after: attempt, random: nil, retryAfter: error.retryAfter)
                else { throw error }
                try await context.sleeper.pause(delay, .retry)
            }
        }
        throw SynheartAuthError(.rotationFailed, "unreachable")
    }

    /// The rotation that another process finished while this one waited for its turn.
    private static func rotationOfAnother(
        _ context: IdentityContext, since before: IdentityRecord
    ) async throws(SynheartAuthError) -> KeyRotation? {
        let now = try await context.ledger.load()
        guard let deviceID = now.deviceID, now.deviceID == before.deviceID, now.identity == .active,
            now.key != before.key, let time = now.keyRotatedAt
        else { return nil }
        return KeyRotation(deviceId: deviceID.text, effectiveAt: time)
    }

    private static func exclusively<Value>(
        _ context: IdentityContext, _ body: () async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        let lock = try await context.ledger.lock(.operation)
        defer { lock.release() }
        return try await body()
    }

    private static func result<Value: Sendable>(
        _ body: () async throws(SynheartAuthError) -> Value
    ) async -> Result<Value, SynheartAuthError> {
        do throws(SynheartAuthError) { return .success(try await body()) } catch { return .failure(error) }
    }
}
