internal import AuthContract

/// When a key is due: 90 days, less up to nine by device, so that devices registered together do not rotate together.
enum RotationSchedule {
    static let age: Int64 = 90 * 86_400
    static let jitter: Int64 = 9 * 86_400

    static func isDue(_ record: IdentityRecord, at now: UnixTime) -> Bool {
        guard record.identity == .active, let deviceID = record.deviceID,
            let since = record.keyRotatedAt ?? record.registeredAt
        else { return false }
        if record.mustRotateBy != nil { return true }
        // The id is random: its first bytes are as good as a draw, and the same at every launch.
        let draw = deviceID.bytes.prefix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        return now - since >= age - draw % jitter
    }
}
