internal import AuthContract
internal import AuthService
internal import GRDB

/// Devices, one row each. No statement rewrites a whole row. Each one names the columns of its change and, in its `WHERE`,
/// what must still hold.
struct SQLiteDeviceStore: DeviceStore {
    let database: StoreDatabase

    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        try await database.read { database in
            try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM devices WHERE device_id = ? AND app_id = ?"),
                arguments: [id.text, app.text]
            ).map { try DeviceRecord(row: StoredRow($0)) }
        }
    }

    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding? {
        try await database.read { try $0.binding(of: thumbprint) }
    }

    func insert(
        _ device: DeviceRecord, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome {
        try await database.write { database in
            // In the transaction, so that the app cannot be removed in between.
            let isProvisioned = try Bool.fetchOne(
                database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM apps WHERE app_id = ?)"),
                arguments: [device.appID.text])
            guard isProvisioned == true else { return .appMissing }
            for key in [device.key, device.previousKey].compactMap({ $0 }) {
                if let binding = try database.binding(of: key.thumbprint) { return .keyTaken(binding) }
            }
            guard try !database.isAttestedKeyTaken(device.appAttest, app: device.appID, device: device.deviceID) else {
                return .attestedKeyTaken
            }
            if device.status == .pending {
                let pending =
                    try Int.fetchOne(
                        database, sql: Self.countOfPending,
                        arguments: [
                            device.appID.text, Assurance.unproven.storedText, device.assurance == .unproven,
                        ]) ?? .max
                guard pending < maximumPending else { return .tooManyPending }
            }
            try database.insert(device)
            try database.bind(device.key, to: device.deviceID, as: .current)
            if let previous = device.previousKey { try database.bind(previous, to: device.deviceID, as: .previous) }
            try database.append(event)
            return .inserted
        }
    }

    /// Without a hint the planner takes the index by status and reads each row for its assurance. The status is a literal: a
    /// bound value does not match a partial index.
    static let countOfPending = """
        SELECT count(*) FROM devices INDEXED BY devices_pending
        WHERE app_id = ? AND status = 'pending' AND (assurance = ?) = ?
        """

    func rotate(_ change: RotationChange, recording event: AuditEvent) async throws(StoreError) -> RotationOutcome {
        try await database.write { database in
            guard try database.canRotate(change) else { return .conflict }
            guard try database.binding(of: change.to.thumbprint) == nil,
                try !database.isAttestedKeyTaken(change.evidence, app: change.appID, device: change.deviceID)
            else { return .keyTaken }
            var sql = """
                UPDATE devices SET previous_key = key,
                  previous_key_until = CASE WHEN must_rotate_reason IS 'compromise' THEN NULL ELSE ? END, key = ?, key_thumbprint = ?,
                  key_rotated_at = ?, must_rotate_by = NULL, must_rotate_reason = NULL, assurance = ?
                """
            var arguments: StatementArguments = [
                change.overlapUntil?.seconds, change.to.spki.data, change.to.thumbprint, change.at.seconds,
                change.assurance.storedText,
            ]
            if let evidence = change.evidence {
                sql += AppAttestEvidence.columns.map { ", \($0) = ?" }.joined()
                arguments += AppAttestEvidence.arguments(evidence)
            }
            sql += " WHERE device_id = ? AND app_id = ? AND key = ? AND status = ?"
            arguments += [
                change.deviceID.text, change.appID.text, change.from.spki.data, DeviceStatus.registered.rawValue,
            ]
            guard try database.change(sql, arguments, recording: event) == 1 else { return .conflict }
            try database.moveKeys(of: change.deviceID, from: .previous, to: .retired)
            try database.moveKeys(of: change.deviceID, from: .current, to: .previous)
            try database.bind(change.to, to: change.deviceID, as: .current)
            return .rotated
        }
    }

    func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        let allowed = from.map(\.rawValue).sorted()
        let marks = databaseQuestionMarks(count: allowed.count)
        return try await change(
            "status = ?", [to.rawValue], of: id, app, where: "status IN (\(marks))", StatementArguments(allowed),
            recording: event)
    }

    func admit(
        _ id: DeviceID, of app: AppID, known: Assurance, as assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "status = ?, assurance = ?", [DeviceStatus.registered.rawValue, assurance.storedText], of: id, app,
            where: "status = ? AND assurance = ?", [DeviceStatus.pending.rawValue, known.storedText], recording: event)
    }

    func replaceEvidence(
        of known: DeviceRecord, with evidence: AppAttestEvidence?, assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            guard try !database.isAttestedKeyTaken(evidence, app: known.appID, device: known.deviceID) else {
                return false
            }
            let columns = AppAttestEvidence.columns.map { ", \($0) = ?" }.joined()
            return try database.change(
                """
                UPDATE devices SET assurance = ?\(columns)
                WHERE device_id = ? AND app_id = ? AND key = ? AND assurance = ?
                  AND attested_key_id IS ? AND coalesce(attested_counter, 0) = ?
                  AND must_rotate_by IS ? AND must_rotate_reason IS ?
                """,
                [assurance.storedText] + AppAttestEvidence.arguments(evidence) + [
                    known.deviceID.text, known.appID.text, known.key.spki.data, known.assurance.storedText,
                    known.appAttest?.keyID.data, Int64(known.appAttest?.counter ?? 0),
                    known.mustRotate?.by.seconds, known.mustRotate?.reason.rawValue,
                ],
                recording: event) == 1
        }
    }

    func advanceCounter(
        _ id: DeviceID, of app: AppID, attestedKey: [UInt8], to counter: UInt32
    ) async throws(StoreError) -> Bool {
        try await change(
            "attested_counter = ?", [Int64(counter)], of: id, app,
            where: "attested_key_id = ? AND attested_counter < ?", [attestedKey.data, Int64(counter)], recording: nil)
    }

    func raiseScheme(_ id: DeviceID, of app: AppID, to scheme: SignatureScheme) async throws(StoreError) {
        _ = try await change(
            "highest_scheme = ?", [scheme.rawValue], of: id, app, where: "highest_scheme < ?", [scheme.rawValue],
            recording: nil)
    }

    func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "highest_scheme = ?", [scheme.rawValue], of: id, app, where: "TRUE", [], recording: event)
    }

    func setMustRotate(
        _ id: DeviceID, of app: AppID, to demand: RotationDemand?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "must_rotate_by = ?, must_rotate_reason = ?", [demand?.by.seconds, demand?.reason.rawValue], of: id, app,
            where: "TRUE", [], recording: event)
    }

    func endOverlap(
        _ id: DeviceID, of app: AppID, key: DevicePublicKey, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "previous_key_until = NULL", [], of: id, app, where: "key = ? AND previous_key_until IS NOT NULL",
            [key.spki.data], recording: event)
    }

    func holdObserved(of app: AppID, limit: Int, recording event: AuditEvent) async throws(StoreError) -> Int {
        try await database.write { database in
            try database.change(Self.hold, [DeviceStatus.pending.rawValue, app.text, limit], recording: event)
        }
    }

    /// The status is a literal: a bound value does not match a partial index.
    static let hold = """
        UPDATE devices SET status = ?, admitted_under_observation = 0
        WHERE device_id IN (
          SELECT device_id FROM devices INDEXED BY devices_observed
          WHERE app_id = ? AND status = 'registered' AND admitted_under_observation <> 0 LIMIT ?)
        """

    func noteSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError) {
        try LastSeen.check(seen.count)
        guard !seen.isEmpty else { return }
        let grain = LastSeen.grain
        try await database.write { database in
            let statement = try database.cachedStatement(
                sql: """
                    UPDATE devices SET last_seen = ?1
                    WHERE device_id = ?2 AND (last_seen IS NULL OR last_seen < ?1 - ?3 OR last_seen > ?1 + ?3)
                    """)
            for (id, time) in seen { try statement.execute(arguments: [time.seconds, id.text, grain]) }
        }
    }

    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord] {
        let (sql, arguments) = DeviceListing.statement(query)
        return try await database.read { database in
            try Row.fetchAll(database, sql: sql, arguments: arguments).map { try DeviceRecord(row: StoredRow($0)) }
        }
    }

    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        try await database.read { database in
            let rows = try Row.fetchAll(
                database, sql: "SELECT status, count(*) AS devices FROM devices WHERE app_id = ? GROUP BY status",
                arguments: [app.text])
            return try rows.map { StoredRow($0) }.reduce(into: [:]) { counts, row in
                let status = try row.text("status")
                counts[try row.parsed("status", status) { DeviceStatus(rawValue: $0) }] =
                    Int(try row.integer("devices"))
            }
        }
    }

    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int] {
        try await database.read { database in
            try Row.fetchAll(
                database,
                sql: """
                    SELECT attested_risk_metric AS metric, count(*) AS devices FROM devices
                    WHERE app_id = ? AND status = ? AND attested_risk_metric IS NOT NULL GROUP BY attested_risk_metric
                    """,
                arguments: [app.text, DeviceStatus.registered.rawValue]
            ).map { StoredRow($0) }.reduce(into: [:]) { counts, row in
                counts[Int(try row.integer("metric"))] = Int(try row.integer("devices"))
            }
        }
    }

    func externalChanges() -> AsyncStream<Void> { database.externalChanges.stream() }

    /// False for the service: only one has the file open.
    let rotatesElsewhere: Bool

    /// Changes columns of one device if a condition holds. Returns whether it did.
    private func change(
        _ columns: String, _ values: StatementArguments, of id: DeviceID, _ app: AppID, where condition: String,
        _ conditionValues: StatementArguments, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            try database.change(
                "UPDATE devices SET \(columns) WHERE device_id = ? AND app_id = ? AND \(condition)",
                values + [id.text, app.text] + conditionValues, recording: event) == 1
        }
    }
}

extension Database {
    fileprivate func canRotate(_ change: RotationChange) throws -> Bool {
        try Bool.fetchOne(
            cachedStatement(
                sql: """
                    SELECT EXISTS (
                      SELECT 1 FROM devices WHERE device_id = ? AND app_id = ? AND key = ? AND status = ?
                        AND (? OR must_rotate_reason IS NOT ?))
                    """),
            arguments: [
                change.deviceID.text, change.appID.text, change.from.spki.data, DeviceStatus.registered.rawValue,
                change.evidence == nil, RotationReason.compromise.rawValue,
            ]) ?? false
    }

    fileprivate func insert(_ device: DeviceRecord) throws {
        let columns =
            [
                "device_id", "app_id", "platform", "status", "key", "key_thumbprint", "previous_key",
                "previous_key_until", "assurance", "registered_at", "key_rotated_at", "last_seen", "highest_scheme",
                "must_rotate_by", "must_rotate_reason", "admitted_under_observation", "local_id",
            ] + AppAttestEvidence.columns
        let values: StatementArguments = [
            device.deviceID.text, device.appID.text, device.platform.rawValue, device.status.rawValue,
            device.key.spki.data, device.key.thumbprint, device.previousKey?.spki.data,
            device.previousKeyUntil?.seconds, device.assurance.storedText, device.registeredAt.seconds,
            device.keyRotatedAt?.seconds, device.lastSeen?.seconds, device.highestScheme.rawValue,
            device.mustRotate?.by.seconds, device.mustRotate?.reason.rawValue, device.admittedUnderObservation,
            device.localID,
        ]
        try cachedStatement(
            sql: """
                INSERT INTO devices (\(columns.joined(separator: ", ")))
                VALUES (\(databaseQuestionMarks(count: columns.count)))
                """
        ).execute(arguments: values + AppAttestEvidence.arguments(device.appAttest))
    }
}
