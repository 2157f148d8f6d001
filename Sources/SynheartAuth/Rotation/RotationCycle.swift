internal import AuthContract

/// Up to three attempts at a rotation while the service cannot be reached. It holds no lock between them.
struct RotationCycle: Sendable {
    let context: IdentityContext

    func run(_ reason: RotationReason) async throws(SynheartAuthError) -> KeyRotation {
        let before = try await context.ledger.load()
        var attempt = 0
        while true {
            do throws(SynheartAuthError) {
                return try await context.exclusively { () async throws(SynheartAuthError) in
                    if let done = try await rotationOfAnother(since: before) { return done }
                    return try await Rotator(context: context).attempt(reason)
                }
            } catch {
                guard error.remedy == .backOff,
                    let delay = RetryPolicy.rotation.delay(after: attempt, random: nil, retryAfter: error.retryAfter)
                else { throw error }
                try await context.sleeper.pause(delay, .retry)
                attempt += 1
            }
        }
    }

    /// The rotation that another process finished while this one waited for the lock.
    private func rotationOfAnother(since before: IdentityRecord) async throws(SynheartAuthError) -> KeyRotation? {
        let now = try await context.ledger.load()
        guard let deviceID = now.deviceID, deviceID == before.deviceID, now.identity == .active,
            now.key != before.key, let time = now.keyRotatedAt
        else { return nil }
        return KeyRotation(deviceId: deviceID.text, effectiveAt: time)
    }
}
