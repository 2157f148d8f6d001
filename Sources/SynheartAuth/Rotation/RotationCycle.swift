internal import AuthContract

/// The purpose of a rotation.
struct RotationGoal: Sendable, Hashable {
    var reason = RotationReason.scheduled
    /// Whether the rotation binds a new App Attest key in place of a lost one.
    var rebinds = false

    /// Whether a rotation with this goal also achieves the other goal.
    func covers(_ other: RotationGoal) -> Bool {
        (reason == .compromise || other.reason == .scheduled) && (rebinds || !other.rebinds)
    }
}

extension RotationGoal {
    /// The goal of finishing a pending rotation. Its reason is `compromise` if the pending rotation has that reason, or
    /// if the service demands a rotation for that reason.
    init(finishing pending: PendingRotation, demanded demand: RotationDemand?) {
        self.init(reason: demand?.reason == .compromise ? .compromise : pending.reason)
    }
}

extension IdentityRecord {
    /// Whether a rotation for a compromise is unfinished, or the service demands one.
    fileprivate var mustRotateForCompromise: Bool {
        if case .rotation(let pending) = self.journal, pending.reason == .compromise { return true }
        return self.rotationDemand?.reason == .compromise
    }
}

/// Runs up to three attempts at a rotation, while the service or the attestation provider cannot answer. Holds no lock between
/// them.
struct RotationCycle: Sendable {
    let context: IdentityContext
    let goal: RotationGoal
    let backOff: BackOff

    func run() async throws(SynheartAuthError) -> KeyRotation {
        let before = try await context.ledger.load()
        var attempt = 0
        while true {
            do throws(SynheartAuthError) {
                return try await context.exclusively { () async throws(SynheartAuthError) in
                    guard !backOff.isEnded else { throw .resetMeanwhile }
                    let rotator = Rotator(context: context)
                    if let done = try await rotationOfAnother(since: before) {
                        // The process that rotated may have died before it deleted the old key.
                        try? await rotator.disposeLeftover()
                        return done
                    }
                    // Rotate for a compromise first: until then the service refuses a new App Attest key.
                    if goal.rebinds, try await context.ledger.load().mustRotateForCompromise {
                        _ = try await rotator.attempt(RotationGoal(reason: .compromise))
                        guard !backOff.isEnded else { throw .resetMeanwhile }
                    }
                    return try await rotator.attempt(goal)
                }
            } catch {
                guard [.backOff, .askProviderAgain].contains(error.remedy),
                    let delay = RetryPolicy.rotation.delay(after: attempt, random: nil, retryAfter: error.retryAfter)
                else { throw error }
                try await backOff.pause(delay, orThrow: error)
                attempt += 1
            }
        }
    }

    /// The rotation that another process finished while this process waited for the lock; nil if there is none. For a compromise, or
    /// to rebind, that rotation is never enough: the record does not show why the other process rotated.
    private func rotationOfAnother(since before: IdentityRecord) async throws(SynheartAuthError) -> KeyRotation? {
        guard RotationGoal().covers(goal) else { return nil }
        let now = try await context.ledger.load()
        guard let deviceID = now.deviceID, deviceID == before.deviceID, now.identity == .active,
            now.key != before.key, let time = now.keyRotatedAt
        else { return nil }
        return KeyRotation(deviceId: deviceID.text, effectiveAt: time)
    }
}
