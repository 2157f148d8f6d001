internal import AuthContract
internal import AuthService

/// Devices, one row each. A row is saved only if its version has not changed since it was read. The counter of an App Attest key
/// and the highest scheme (`DeviceFact`) only grow. They are changed without a new version.
struct PostgreSQLDeviceStore: DeviceStore {
    let database: StoreDatabase

    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        let statement = Statement(
            "SELECT \(DeviceRecord.selection) FROM devices WHERE device_id = $1 AND app_id = $2 AND NOT forgotten",
            [.uuid(id), .text(app.text)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try DeviceRecord(row: row) }
    }

    func mayHaveRotatedElsewhere(_ device: DeviceRecord) async throws(StoreError) -> Bool {
        let statement = Statement(
            "SELECT FROM devices WHERE device_id = $1 AND version = $2 AND key = $3 AND NOT forgotten",
            [.uuid(device.deviceID), .integer(device.version), .bytes(device.key.spki)])
        return try await database.lookUp(statement) { _ in true } == nil
    }

    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding? {
        try await database.lookUp(KeyTable.bindings(of: [thumbprint])) { (row) throws(StoreError) in
            try KeyBinding(row: row)
        }
    }

    func insert(
        _ device: DeviceRecord, under app: StoredApp, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome {
        guard app.appID == device.appID else { return .appChanged }
        return try await database.write { (connection) throws(StoreError) in
            let keys = [device.key, device.previousKey].compactMap { $0 }
            // The app's row is locked, so that the app cannot be removed or changed before the commit.
            let found = try connection.results([
                Statement(
                    "SELECT 1 FROM apps WHERE app_id = $1 AND record = $2 FOR SHARE",
                    [.text(app.appID.text), .text(app.sealedJSON)]),
                KeyTable.bindings(of: keys.map(\.thumbprint)),
                KeyTable.attestedKey(device.appAttest, app: device.appID, device: device.deviceID),
            ])
            guard found[0].count > 0 else { return .appChanged }
            for key in keys {
                for row in found[1].rows where try row.text("thumbprint") == key.thumbprint {
                    return .keyTaken(try KeyBinding(row: row))
                }
            }
            guard found[2].count == 0 else { return .attestedKeyTaken }
            if device.status == .pending {
                guard try connection.countPending(like: device) < maximumPending else { return .tooManyPending }
            }
            // Insert the keys with the commit. If another transaction inserts one of the keys first, this transaction is retried,
            // and its checks see that key.
            connection.beforeCommit(
                Statement(
                    """
                    INSERT INTO devices (\(DeviceRecord.selection))
                    VALUES (\(placeholders(DeviceRecord.columns.count)))
                    """, device.parameters))
            connection.beforeCommit(KeyTable.bind(device.key, to: device.deviceID, as: .current))
            if let previous = device.previousKey {
                connection.beforeCommit(KeyTable.bind(previous, to: device.deviceID, as: .previous))
            }
            try connection.append(event)
            return .inserted
        }
    }

    func save(_ changes: [DeviceChange]) async throws(StoreError) -> [SaveOutcome] {
        try await database.write { (connection) throws(StoreError) in
            // Sorted, so that two calls that lock several rows do not deadlock.
            let order = changes.indices.sorted { changes[$0].before.deviceID.text < changes[$1].before.deviceID.text }
            let areFree = try connection.haveFreeKeys(changes)
            let saved = try connection.results(order.filter { areFree[$0] }.map { Self.statement(changes[$0]) })
            var outcomes = areFree.map { $0 ? SaveOutcome.conflict : .keyTaken }
            for (index, result) in zip(order.filter { areFree[$0] }, saved) where result.changes == 1 {
                outcomes[index] = .saved
                let change = changes[index]
                if change.replacesKey {
                    connection.beforeCommit(KeyTable.move(of: change.after.deviceID, from: .previous, to: .retired))
                    connection.beforeCommit(KeyTable.move(of: change.after.deviceID, from: .current, to: .previous))
                    connection.beforeCommit(KeyTable.bind(change.after.key, to: change.after.deviceID, as: .current))
                }
                try connection.append(change.event)
            }
            if outcomes.contains(.saved) { connection.tellOtherNodes() }
            return outcomes
        }
    }

    private static func statement(_ change: DeviceChange) -> Statement {
        let (before, after) = (change.before, change.after)
        var columns = [
            "status", "key", "previous_key", "previous_key_until", "assurance", "key_rotated_at", "must_rotate_by",
            "must_rotate_reason", "admitted_under_observation", "version", "app_version",
        ]
        var conditions: [Parameter] = [.uuid(before.deviceID), .text(before.appID.text), .integer(before.version)]
        var facts = ""
        if change.replacesAppAttest {
            facts = " AND coalesce(attested_counter, 0) = $4 AND highest_scheme = $5"
            conditions += [
                .integer(Int64(before.appAttest?.counter ?? 0)), .integer(Int64(before.highestScheme.rawValue)),
            ]
        }
        var parameters: [Parameter] = [
            .text(after.status.rawValue), .bytes(after.key.spki), .bytes(after.previousKey?.spki),
            .time(after.previousKeyUntil), .text(after.assurance.storedText), .time(after.keyRotatedAt),
            .time(after.mustRotate?.by), .text(after.mustRotate?.reason.rawValue),
            .bool(after.admittedUnderObservation), .integer(before.version + 1), .text(after.appVersion),
        ]
        if let endedAt = change.endedAt {
            columns.append("ended_at")
            parameters.append(.time(endedAt))
        }
        if change.lowersScheme {
            columns.append("highest_scheme")
            parameters.append(.integer(Int64(after.highestScheme.rawValue)))
        }
        if change.replacesAppAttest {
            columns += AppAttestKeyState.columns
            parameters += AppAttestKeyState.parameters(after.appAttest)
        }
        return Statement(
            """
            UPDATE devices SET \(assignments(columns, after: conditions.count))
            WHERE device_id = $1 AND app_id = $2 AND version = $3\(facts)
            """, conditions + parameters)
    }

    func raise(_ fact: DeviceFact, of id: DeviceID, app: AppID) async throws(StoreError) -> Bool {
        let (sql, parameters): (String, [Parameter]) =
            switch fact {
            case .counter(let counter, let key):
                (
                    "attested_counter = $3 WHERE attested_key_id = $4 AND attested_counter < $3",
                    [.integer(Int64(counter)), .bytes(key)]
                )
            case .scheme(let scheme):
                ("highest_scheme = $3 WHERE highest_scheme < $3", [.integer(Int64(scheme.rawValue))])
            }
        // A change of the counter needs no notification, because other nodes re-read the counter for each assertion.
        let isTelling = if case .scheme = fact { true } else { false }
        return try await database.write { (connection) throws(StoreError) in
            try connection.change(
                "UPDATE devices SET \(sql) AND device_id = $1 AND app_id = $2",
                [.uuid(id), .text(app.text)] + parameters, recording: nil, telling: isTelling) == 1
        }
    }

    func observedDevices(of app: AppID, limit: Int) async throws(StoreError) -> [DeviceRecord] {
        // The status is a literal, so that the planner can use the partial index.
        let statement = Statement(
            """
            SELECT \(DeviceRecord.selection) FROM devices
            WHERE app_id = $1 AND status = 'registered' AND admitted_under_observation LIMIT $2
            """, [.text(app.text), .integer(Int64(limit))])
        return try await database.read { (connection) throws(StoreError) in
            try connection.results([statement])[0].rows.map { (row) throws(StoreError) in try DeviceRecord(row: row) }
        }
    }

    func writeLastSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError) {
        try LastSeen.check(seen.count)
        guard !seen.isEmpty else { return }
        let parameters: [Parameter] = [
            .uuids(Array(seen.keys)), .integers(seen.values.map(\.seconds)), .integer(LastSeen.grain),
        ]
        // Rows that another node is changing are skipped, so that no node waits for another. A later call writes their time, once
        // the device is seen again.
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

    func knownIDs(
        after: DeviceQuery.PageToken?, limit: Int
    ) async throws(StoreError) -> [DeviceQuery.PageToken] {
        let statement = DeviceListing.ids(after: after, limit: limit)
        return try await database.read { (connection) throws(StoreError) in
            try connection.results([statement])[0].rows.map { (row) throws(StoreError) in
                try DeviceQuery.PageToken(row: row)
            }
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
}

/// `$1, $2, …`
func placeholders(_ count: Int) -> String { (1...count).map { "$\($0)" }.joined(separator: ", ") }

/// `column = $n, …`
func assignments(_ columns: [String], after count: Int) -> String {
    columns.enumerated().map { "\($1) = $\(count + 1 + $0)" }.joined(separator: ", ")
}

extension Connection {
    /// Whether the new keys of each change are free: the key was never bound, and no other device of the app has the App Attest
    /// key.
    fileprivate func haveFreeKeys(_ changes: [DeviceChange]) throws(StoreError) -> [Bool] {
        var areFree = changes.map { _ in true }
        let replacing = changes.indices.filter { changes[$0].replacesKey || changes[$0].replacesAppAttest }
        for index in replacing {
            let change = changes[index]
            let taken = try results([
                KeyTable.bindings(of: change.replacesKey ? [change.after.key.thumbprint] : []),
                KeyTable.attestedKey(
                    change.replacesAppAttest ? change.after.appAttest : nil, app: change.after.appID,
                    device: change.after.deviceID),
            ])
            areFree[index] = taken.allSatisfy { $0.count == 0 }
        }
        return areFree
    }

    /// Counts the app's pending devices: the unproven ones if the device is unproven, otherwise those with evidence. Insertions of
    /// an app's pending devices are serialized.
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
