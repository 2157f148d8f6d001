internal import AuthContract

/// The purpose of a rotation.
struct RotationGoal: Sendable, Hashable {
    var reason = RotationReason.scheduled
    /// Whether the rotation binds a new App Attest key in place of a lost one.
    var rebinds = false
    /// Whether the reason is the service's alone. It ends with the service's demand.
    var isDemanded = false

    /// Whether a rotation with this goal also achieves the other goal. One for the service's compromise may end as a scheduled one, so it
    /// does not achieve the app's.
    func covers(_ other: RotationGoal) -> Bool {
        let isForCompromise = reason == .compromise && (!isDemanded || other.isDemanded)
        return (isForCompromise || other.reason == .scheduled) && (rebinds || !other.rebinds)
    }
}

extension RotationGoal {
    /// The goal of a rotation that finishes the pending one, if there is one, and does what the service demands.
    init(for record: IdentityRecord) {
        if case .rotation(let pending) = record.journal, pending.reason == .compromise {
            self.init(reason: .compromise)
        } else {
            self.init(reason: record.rotationDemand?.reason ?? .scheduled, isDemanded: record.rotationDemand != nil)
        }
    }
}

extension IdentityRecord {
    /// The reason to send with a pending rotation: the stronger one of the app's and the service's.
    func reason(of pending: PendingRotation) -> RotationReason {
        self.rotationDemand?.reason == .compromise ? .compromise : pending.reason
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
                    if goal.rebinds {
                        if let done = try await rotationForCompromise(rotator) { return done }
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

    /// If a rotation for a compromise is unfinished, or the service demands one, makes an attempt at it: until then the service
    /// refuses a new App Attest key.
    ///
    /// - Returns: The rotation if it has bound a new App Attest key, because the service has withdrawn its demand meanwhile.
    private func rotationForCompromise(_ rotator: Rotator) async throws(SynheartAuthError) -> KeyRotation? {
        let before = try await context.ledger.load()
        let first = RotationGoal(for: before)
        guard first.reason == .compromise else { return nil }
        let rotation = try await rotator.attempt(first)
        let key = try await context.ledger.load().attestationKey
        return key?.isUsed == true && key?.id != before.attestationKey?.id ? rotation : nil
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
