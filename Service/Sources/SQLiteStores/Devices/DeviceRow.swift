internal import AuthContract
internal import AuthService
internal import GRDB
internal import StrictJSON

extension DeviceRecord {
    /// Reads a row of `devices` as strictly as a client's input.
    init(row: StoredRow) throws(StoreError) {
        let (app, device, platform, status) = (
            try row.text("app_id"), try row.text("device_id"), try row.text("platform"), try row.text("status")
        )
        let (key, scheme, assurance) = (
            try row.bytes("key"), try row.integer("highest_scheme"), try row.text("assurance")
        )
        self.init(
            appID: try row.parsed("app_id", app) { try AppID($0) },
            deviceID: try row.parsed("device_id", device) { try DeviceID($0) },
            platform: try row.parsed("platform", platform) { Platform(rawValue: $0) },
            status: try row.parsed("status", status) { DeviceStatus(rawValue: $0) },
            key: try row.parsed("key", key) { try DevicePublicKey($0) },
            previousKey: try row.optionalBytes("previous_key").map { bytes throws(StoreError) in
                try row.parsed("previous_key", bytes) { try DevicePublicKey($0) }
            },
            previousKeyUntil: try row.optionalTime("previous_key_until"),
            assurance: try row.parsed("assurance", assurance) {
                try Assurance(JSONFields(JSONValue(parsing: $0, limits: .stored)))
            },
            appAttest: try AppAttestEvidence(row: row),
            registeredAt: UnixTime(try row.integer("registered_at")),
            keyRotatedAt: try row.optionalTime("key_rotated_at"), lastSeen: try row.optionalTime("last_seen"),
            highestScheme: try row.parsed("highest_scheme", scheme) { SignatureScheme(rawValue: Int($0)) },
            mustRotate: try RotationDemand(row: row),
            admittedUnderObservation: try row.integer("admitted_under_observation") != 0,
            localID: try row.optionalText("local_id"), version: try row.integer("version"))
    }
}

extension RotationDemand {
    fileprivate init?(row: StoredRow) throws(StoreError) {
        guard let by = try row.optionalTime("must_rotate_by") else { return nil }
        let reason = try row.optionalText("must_rotate_reason") ?? RotationReason.scheduled.rawValue
        self.init(by: by, reason: try row.parsed("must_rotate_reason", reason) { RotationReason(rawValue: $0) })
    }
}

extension AppAttestEvidence {
    fileprivate init?(row: StoredRow) throws(StoreError) {
        guard let keyID = try row.optionalBytes("attested_key_id") else { return nil }
        let counter = try row.integer("attested_counter")
        self.init(
            keyID: keyID, publicKey: try row.bytes("attested_public_key"), appID: try row.text("attested_app_id"),
            environment: try row.text("attested_environment"),
            attestedExtensions: try row.optionalInteger("attested_extensions") == 1,
            counter: try row.parsed("attested_counter", counter) { UInt32(exactly: $0) },
            receipt: try row.optionalBytes("attested_receipt"),
            receiptOutcome: try row.optionalText("attested_receipt_outcome"),
            riskMetric: try row.optionalInteger("attested_risk_metric").map { Int($0) },
            refresh: ReceiptRefresh(
                dueAt: try row.optionalTime("receipt_due_at"), askedAt: try row.optionalTime("receipt_asked_at"),
                outcome: try row.optionalText("receipt_exchange_outcome"),
                failures: Int(try row.integer("receipt_failures"))))
    }

    /// The columns of evidence, in the order of `columns`.
    static func arguments(_ evidence: AppAttestEvidence?) -> StatementArguments {
        guard let evidence else {
            return StatementArguments([(any DatabaseValueConvertible)?](repeating: nil, count: columns.count - 1)) + [0]
        }
        return [
            evidence.keyID.data, evidence.publicKey.data, evidence.appID, evidence.environment,
            evidence.attestedExtensions ? 1 : 0, Int64(evidence.counter), evidence.receipt?.data,
            evidence.receiptOutcome,
            evidence.riskMetric.map { Int64($0) },
        ] + arguments(evidence.refresh)
    }

    static let columns =
        [
            "attested_key_id", "attested_public_key", "attested_app_id", "attested_environment",
            "attested_extensions", "attested_counter", "attested_receipt", "attested_receipt_outcome",
            "attested_risk_metric",
        ] + refreshColumns

    /// The columns of a refresh, in the order of `refreshColumns`.
    static func arguments(_ refresh: ReceiptRefresh) -> StatementArguments {
        [refresh.dueAt?.seconds, refresh.askedAt?.seconds, refresh.outcome, Int64(refresh.failures)]
    }

    static let refreshColumns = ["receipt_due_at", "receipt_asked_at", "receipt_exchange_outcome", "receipt_failures"]
}

extension Assurance {
    var storedText: String { JSONValue.object(json).text() }
}

extension StoredRow {
    func optionalTime(_ column: String) throws(StoreError) -> UnixTime? {
        try optionalInteger(column).map { UnixTime($0) }
    }
}
