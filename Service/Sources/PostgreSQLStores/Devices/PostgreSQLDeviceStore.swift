internal import AuthContract
internal import AuthService

/// Devices, one row each. No statement rewrites a whole row. Each one names the columns of its change and, in its `WHERE`,
/// what must still hold.
struct PostgreSQLDeviceStore: DeviceStore {
    let database: StoreDatabase

    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        let statement = Statement(
            "SELECT \(DeviceRecord.selection) FROM devices WHERE device_id = $1 AND app_id = $2",
            [.uuid(id), .text(app.text)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try DeviceRecord(row: row) }
    }

    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding? {
        try await database.lookUp(KeyTable.bindings(of: [thumbprint])) { (row) throws(StoreError) in
            try KeyBinding(row: row)
        }
    }

    func insert(
        _ device: DeviceRecord, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome {
        try await database.write { (connection) throws(StoreError) in
            let keys = [device.key, device.previousKey].compactMap { $0 }
            // The row of the app is locked, so that it cannot be removed in between.
            let found = try connection.results([
                Statement("SELECT 1 FROM apps WHERE app_id = $1 FOR KEY SHARE", [.text(device.appID.text)]),
                KeyTable.bindings(of: keys.map(\.thumbprint)),
                KeyTable.attestedKey(device.appAttest, app: device.appID, device: device.deviceID),
            ])
            guard found[0].count > 0 else { return .appMissing }
            for key in keys {
                for row in found[1].rows where try row.text("thumbprint") == key.thumbprint {
                    return .keyTaken(try KeyBinding(row: row))
                }
            }
            guard found[2].count == 0 else { return .attestedKeyTaken }
            if device.status == .pending {
                guard try connection.countPending(like: device) < maximumPending else { return .tooManyPending }
            }
            // With the commit: should another transaction insert one of the keys meanwhile, the checks run again and see it.
            connection.finally(
                Statement(
                    """
                    INSERT INTO devices (\(DeviceRecord.selection))
                    VALUES (\(placeholders(DeviceRecord.columns.count)))
                    """, device.parameters))
            connection.finally(KeyTable.bind(device.key, to: device.deviceID, as: .current))
            if let previous = device.previousKey {
                connection.finally(KeyTable.bind(previous, to: device.deviceID, as: .previous))
            }
            connection.append(event)
            return .inserted
        }
    }

    func rotate(_ change: RotationChange, recording event: AuditEvent) async throws(StoreError) -> RotationOutcome {
        try await database.write { (connection) throws(StoreError) in
            let holds = try connection.exists(
                """
                SELECT 1 FROM devices WHERE device_id = $1 AND app_id = $2 AND key = $3 AND status = 'registered'
                  AND ($4 OR must_rotate_reason IS DISTINCT FROM 'compromise')
                FOR NO KEY UPDATE
                """,
                [
                    .uuid(change.deviceID), .text(change.appID.text), .bytes(change.from.spki),
                    .bool(change.evidence == nil),
                ])
            guard holds else { return .conflict }
            let taken = try connection.results([
                KeyTable.bindings(of: [change.to.thumbprint]),
                KeyTable.attestedKey(change.evidence, app: change.appID, device: change.deviceID),
            ])
            guard taken.allSatisfy({ $0.count == 0 }) else { return .keyTaken }
            var sql = """
                UPDATE devices SET previous_key = key,
                  previous_key_until = CASE WHEN must_rotate_reason = 'compromise' THEN NULL ELSE $1::bigint END,
                  key = $2, key_rotated_at = $3, must_rotate_by = NULL, must_rotate_reason = NULL, assurance = $4
                """
            var parameters: [Parameter] = [
                .time(change.overlapUntil), .bytes(change.to.spki), .time(change.at),
                .text(change.assurance.storedText), .uuid(change.deviceID),
            ]
            if let evidence = change.evidence {
                sql += assignments(AppAttestEvidence.columns, after: parameters.count)
                parameters += AppAttestEvidence.parameters(evidence)
            }
            // The row is locked since the first statement, so its conditions still hold.
            guard try connection.change(sql + " WHERE device_id = $5", parameters, recording: event) == 1 else {
                return .conflict
            }
            connection.finally(KeyTable.move(of: change.deviceID, from: .previous, to: .retired))
            connection.finally(KeyTable.move(of: change.deviceID, from: .current, to: .previous))
            connection.finally(KeyTable.bind(change.to, to: change.deviceID, as: .current))
            return .rotated
        }
    }

    func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "status = $3", where: "status = ANY ($4)", of: id, app,
            [.text(to.rawValue), .texts(from.map(\.rawValue).sorted())], recording: event)
    }

    func admit(
        _ id: DeviceID, of app: AppID, known: Assurance, as assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "status = 'registered', assurance = $3", where: "status = 'pending' AND assurance = $4", of: id, app,
            [.text(assurance.storedText), .text(known.storedText)], recording: event)
    }

    func replaceEvidence(
        of known: DeviceRecord, with evidence: AppAttestEvidence?, assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        let conditions: [Parameter] = [
            .uuid(known.deviceID), .text(known.appID.text), .bytes(known.key.spki), .text(known.assurance.storedText),
            .bytes(known.appAttest?.keyID), .integer(Int64(known.appAttest?.counter ?? 0)),
            .time(known.mustRotate?.by), .text(known.mustRotate?.reason.rawValue), .text(assurance.storedText),
        ]
        return try await database.write { (connection) throws(StoreError) in
            let taken = KeyTable.attestedKey(evidence, app: known.appID, device: known.deviceID)
            guard try connection.results([taken])[0].count == 0 else { return false }
            let sql = """
                UPDATE devices SET assurance = $9\(assignments(AppAttestEvidence.columns, after: conditions.count))
                WHERE device_id = $1 AND app_id = $2 AND key = $3 AND assurance = $4
                  AND attested_key_id IS NOT DISTINCT FROM $5 AND coalesce(attested_counter, 0) = $6
                  AND must_rotate_by IS NOT DISTINCT FROM $7 AND must_rotate_reason IS NOT DISTINCT FROM $8
                """
            return try connection.change(
                sql, conditions + AppAttestEvidence.parameters(evidence), recording: event) == 1
        }
    }

    func advanceCounter(
        _ id: DeviceID, of app: AppID, attestedKey: [UInt8], to counter: UInt32
    ) async throws(StoreError) -> Bool {
        try await change(
            "attested_counter = $3", where: "attested_key_id = $4 AND attested_counter < $3", of: id, app,
            [.integer(Int64(counter)), .bytes(attestedKey)], recording: nil, telling: false)
    }

    func raiseScheme(_ id: DeviceID, of app: AppID, to scheme: SignatureScheme) async throws(StoreError) {
        _ = try await change(
            "highest_scheme = $3", where: "highest_scheme < $3", of: id, app, [.integer(Int64(scheme.rawValue))],
            recording: nil)
    }

    func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "highest_scheme = $3", where: "TRUE", of: id, app, [.integer(Int64(scheme.rawValue))], recording: event)
    }

    func setMustRotate(
        _ id: DeviceID, of app: AppID, to demand: RotationDemand?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "must_rotate_by = $3, must_rotate_reason = $4", where: "TRUE", of: id, app,
            [.time(demand?.by), .text(demand?.reason.rawValue)], recording: event)
    }

    func endOverlap(
        _ id: DeviceID, of app: AppID, key: DevicePublicKey, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await change(
            "previous_key_until = NULL", where: "key = $3 AND previous_key_until IS NOT NULL", of: id, app,
            [.bytes(key.spki)], recording: event)
    }

    func holdObserved(of app: AppID, limit: Int, recording event: AuditEvent) async throws(StoreError) -> Int {
        try await database.write { (connection) throws(StoreError) in
            var held = 0
            while held < limit {
                // Rows that another transaction changes meanwhile do not count, so fewer than the limit may come back.
                let count = try connection.rows(Self.hold, [.text(app.text), .integer(Int64(limit - held))]).changes
                if count == 0 { break }
                held += count
            }
            if held > 0 {
                connection.append(event)
                connection.tellOtherNodes()
            }
            return held
        }
    }

    /// The status is a literal, as in the partial index.
    private static let hold = """
        UPDATE devices SET status = 'pending', admitted_under_observation = FALSE
        WHERE device_id IN (
          SELECT device_id FROM devices WHERE app_id = $1 AND status = 'registered' AND admitted_under_observation
          ORDER BY device_id LIMIT $2 FOR NO KEY UPDATE)
        """

    func noteSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError) {
        try LastSeen.check(seen.count)
        guard !seen.isEmpty else { return }
        let parameters: [Parameter] = [
            .uuids(Array(seen.keys)), .integers(seen.values.map(\.seconds)), .integer(LastSeen.grain),
        ]
        // Rows that another node is changing are skipped: their time is written an hour later, and no node waits for another.
        try await database.write(isLasting: false) { (connection) throws(StoreError) in
            _ = try connection.rows(
                """
                UPDATE devices SET last_seen = due.at FROM (
                  SELECT device_id, seen.at FROM devices JOIN unnest($1, $2) AS seen (device_id, at) USING (device_id)
                  WHERE last_seen IS NULL OR last_seen < seen.at - $3 OR last_seen > seen.at + $3
                  FOR NO KEY UPDATE OF devices SKIP LOCKED) AS due
                WHERE devices.device_id = due.device_id
                """, parameters)
        }
    }

    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord] {
        let statement = DeviceListing.statement(query)
        return try await database.read { (connection) throws(StoreError) in
            try connection.results([statement])[0].rows.map { (row) throws(StoreError) in try DeviceRecord(row: row) }
        }
    }

    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        try await database.read { (connection) throws(StoreError) in
            let rows = try connection.rows(
                """
                SELECT status, sum(devices)::bigint AS devices FROM device_counts WHERE app_id = $1
                GROUP BY status HAVING sum(devices) > 0
                """, [.text(app.text)]
            ).rows
            var counts: [DeviceStatus: Int] = [:]
            for row in rows {
                let status = try row.text("status")
                counts[try row.parsed("status", status) { DeviceStatus(rawValue: $0) }] =
                    Int(clamping: try row.integer("devices"))
            }
            return counts
        }
    }

    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int] {
        try await database.read { (connection) throws(StoreError) in
            let rows = try connection.rows(
                """
                SELECT attested_risk_metric AS metric, count(*) AS devices FROM devices
                WHERE app_id = $1 AND status = 'registered' AND attested_risk_metric IS NOT NULL
                GROUP BY attested_risk_metric
                """, [.text(app.text)]
            ).rows
            var counts: [Int: Int] = [:]
            for row in rows {
                counts[Int(clamping: try row.integer("metric"))] = Int(clamping: try row.integer("devices"))
            }
            return counts
        }
    }

    func externalChanges() -> AsyncStream<Void> { database.externalChanges.stream() }

    /// Changes columns of one device if a condition holds. Returns whether it did. The parameters begin with `$3`.
    private func change(
        _ columns: String, where condition: String, of id: DeviceID, _ app: AppID, _ parameters: [Parameter],
        recording event: AuditEvent?, telling: Bool = true
    ) async throws(StoreError) -> Bool {
        try await database.write { (connection) throws(StoreError) in
            try connection.change(
                "UPDATE devices SET \(columns) WHERE device_id = $1 AND app_id = $2 AND \(condition)",
                [.uuid(id), .text(app.text)] + parameters, recording: event, telling: telling) == 1
        }
    }
}

/// `$1, $2, …`
private func placeholders(_ count: Int) -> String { (1...count).map { "$\($0)" }.joined(separator: ", ") }

/// `, column = $n` for each column.
func assignments(_ columns: [String], after count: Int) -> String {
    columns.enumerated().map { ", \($1) = $\(count + 1 + $0)" }.joined()
}

extension Connection {
    /// The pending devices of the same app and kind. Insertions of an app's pending devices come one after the other.
    fileprivate func countPending(like device: DeviceRecord) throws(StoreError) -> Int {
        let counted = try results([
            AdvisoryLock.pendingDevices.statement(of: device.appID.text),
            Statement(
                """
                SELECT count(*) AS pending FROM devices
                WHERE app_id = $1 AND status = 'pending' AND (assurance = $2) = $3
                """,
                [
                    .text(device.appID.text), .text(Assurance.unproven.storedText),
                    .bool(device.assurance == .unproven),
                ]),
        ])
        guard let pending = try counted[1].first?.integer("pending") else { return .max }
        return Int(clamping: pending)
    }
}
