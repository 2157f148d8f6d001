internal import AuthContract

/// The rule for when a rotation of the key is due: at once if the service demands a rotation; else after 90 days,
/// minus up to 9 days by device id, so that devices registered together rotate at different times.
enum RotationSchedule {
    static let age: Int64 = 90 * 86_400
    static let jitter: Int64 = 9 * 86_400
    private static let day: Int64 = 86_400

    static func isDue(_ record: IdentityRecord, at now: UnixTime) -> Bool {
        guard record.identity == .active, let deviceID = record.deviceID,
            let since = record.keyRotatedAt ?? record.registeredAt
        else { return false }
        if record.rotationDemand != nil { return true }
        // The id is random, so its first bytes spread devices evenly, and are the same at every launch.
        let draw = deviceID.bytes.prefix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let elapsed = now - since
        // If the key's date is more than a day in the future, a clock was wrong, so the key's age is unknown. Such a key is
        // due for rotation.
        return elapsed >= age - draw % jitter || elapsed < -day
    }
}

/// The cause of a maintenance run. A new demand to rotate is a new cause, and so is a new identity.
struct MaintenanceCause: Sendable, Hashable {
    let deviceID: DeviceID?
    let demand: RotationDemand?
}

/// A maintenance run that failed.
struct FailedMaintenance: Sendable, Hashable {
    let cause: MaintenanceCause
    /// The time of the failure, on the continuous clock.
    let at: Duration

    /// Whether it is too early for another run for this cause. The longest pause of a rotation is an hour. Without a pause, each
    /// request of the app would begin another cycle of attempts. Without another run, a phone that was offline for some minutes
    /// would miss the time by which it must rotate.
    func forbids(_ cause: MaintenanceCause, at now: Duration) -> Bool {
        cause == self.cause && now - at < .seconds(3600)
    }
}
