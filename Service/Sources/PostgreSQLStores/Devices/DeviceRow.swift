internal import AuthContract
internal import AuthService

extension DeviceRecord {
    /// The columns of a row. They are listed, because a prepared `SELECT *` fails once a newer version adds a column.
    static let columns: [String] =
        [
            "device_id", "app_id", "platform", "status", "key", "previous_key", "previous_key_until", "assurance",
            "registered_at", "key_rotated_at", "last_seen", "highest_scheme", "must_rotate_by", "must_rotate_reason",
            "admitted_under_observation", "local_id", "version", "app_version",
        ] + AppAttestKeyState.columns

    static let selection = columns.joined(separator: ", ")

    /// The values of a new row, in the order of `columns`.
    var parameters: [Parameter] {
        [
            .uuid(deviceID), .text(appID.text), .text(platform.rawValue), .text(status.rawValue), .bytes(key.spki),
            .bytes(previousKey?.spki), .time(previousKeyUntil), .text(assurance.storedText), .time(registeredAt),
            .time(keyRotatedAt), .time(lastSeen), .integer(Int64(highestScheme.rawValue)), .time(mustRotate?.by),
            .text(mustRotate?.reason.rawValue), .bool(admittedUnderObservation), .text(localID), .integer(version),
            .text(appVersion),
        ] + AppAttestKeyState.parameters(appAttest)
    }
}

extension AppAttestKeyState {
    /// The values of the state of an App Attest key, in the order of `columns`.
    static func parameters(_ evidence: AppAttestKeyState?) -> [Parameter] {
        [
            .bytes(evidence?.keyID), .bytes(evidence?.publicKey), .text(evidence?.appID), .text(evidence?.environment),
            .bool(evidence?.attestedExtensions ?? false), .integer(evidence.map { Int64($0.counter) }),
            .bytes(evidence?.receipt), .text(evidence?.receiptOutcome),
            .integer(evidence?.riskMetric.map { Int64($0) }),
        ] + parameters(evidence?.refresh ?? ReceiptRefresh())
    }

    /// The values of a refresh, in the order of `refreshColumns`.
    static func parameters(_ refresh: ReceiptRefresh) -> [Parameter] {
        [
            .time(refresh.dueAt), .time(refresh.askedAt), .text(refresh.outcome), .integer(Int64(refresh.failures)),
        ]
    }
}
