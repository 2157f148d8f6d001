internal import AuthContract
internal import AuthService
internal import GRDB

/// Devices, one row each. A row is saved only if its version has not changed since it was read. Values that only grow, such as the
/// counter of an App Attest key, are changed without a new version.
struct SQLiteDeviceStore: DeviceStore {
    let database: StoreDatabase

    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        try await database.read { database in
            try Row.fetchOne(
                database.cachedStatement(
                    sql: "SELECT * FROM devices WHERE device_id = ? AND app_id = ? AND forgotten = 0"),
                arguments: [id.text, app.text]
            ).map { try DeviceRecord(row: StoredRow($0)) }
        }
    }

    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding? {
        try await database.read { try $0.binding(of: thumbprint) }
    }

    func insert(
        _ device: DeviceRecord, under app: StoredApp, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome {
        guard app.appID == device.appID else { return .appChanged }
        return try await database.write { database in
            // Checked in the transaction, so that the app cannot be removed or changed before the insertion.
            let isStored = try Bool.fetchOne(
                database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM apps WHERE app_id = ? AND record = ?)"),
                arguments: [app.appID.text, app.sealedJSON])
            guard isStored == true else { return .appChanged }
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

    /// Counts an app's pending devices that have a given assurance, or those that do not. Without the hint, the planner uses the index by
    /// status and reads each row for its assurance. The status is a literal, because a bound value does not match a partial index.
    static let countOfPending = """
        SELECT count(*) FROM devices INDEXED BY devices_pending
        WHERE app_id = ? AND status = 'pending' AND (assurance = ?) = ?
        """

    func save(_ changes: [DeviceChange]) async throws(StoreError) -> [SaveOutcome] {
        try await database.write { database in try changes.map { try database.save($0) } }
    }

    func raise(_ fact: DeviceFact, of id: DeviceID, app: AppID) async throws(StoreError) -> Bool {
        let (sql, values): (String, StatementArguments) =
            switch fact {
            case .counter(let counter, let key):
                (
                    "attested_counter = ?1 WHERE attested_key_id = ?4 AND attested_counter < ?1",
                    [Int64(counter), id.text, app.text, key.data]
                )
            case .scheme(let scheme):
                ("highest_scheme = ?1 WHERE highest_scheme < ?1", [scheme.rawValue, id.text, app.text])
            }
        return try await database.write { database in
            try database.change(
                "UPDATE devices SET \(sql) AND device_id = ?2 AND app_id = ?3", values, recording: nil) == 1
        }
    }

    func observedDevices(of app: AppID, limit: Int) async throws(StoreError) -> [DeviceRecord] {
        try await database.read { database in
            try Row.fetchAll(database, sql: Self.observed, arguments: [app.text, limit])
                .map { try DeviceRecord(row: StoredRow($0)) }
        }
    }

    /// Selects an app's registered devices that were admitted only because the app was in mode `observe`. The status is a
    /// literal, because a bound value does not match a partial index.
    static let observed = """
        SELECT * FROM devices INDEXED BY devices_observed
        WHERE app_id = ? AND status = 'registered' AND admitted_under_observation <> 0 LIMIT ?
        """

    func writeLastSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError) {
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

    func knownIDs(
        after: DeviceQuery.PageToken?, limit: Int
    ) async throws(StoreError) -> [DeviceQuery.PageToken] {
        let (sql, arguments) = DeviceListing.ids(after: after, limit: limit)
        return try await database.read { database in
            try Row.fetchAll(database, sql: sql, arguments: arguments).map {
                try DeviceQuery.PageToken(row: StoredRow($0))
            }
        }
    }

    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        try await database.read { database in
            let rows = try Row.fetchAll(database, sql: Self.counts, arguments: [app.text])
            return try rows.map { StoredRow($0) }.reduce(into: [:]) { counts, row in
                let status = try row.text("status")
                counts[try row.parsed("status", status) { DeviceStatus(rawValue: $0) }] =
                    Int(try row.integer("devices"))
            }
        }
    }

    static let counts = "SELECT status, devices FROM device_counts WHERE app_id = ? AND devices > 0"

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

    /// Whether other processes rotate keys. False for the service: only one service opens the file.
    let rotatesElsewhere: Bool

    func mayHaveRotatedElsewhere(_ device: DeviceRecord) async throws(StoreError) -> Bool { rotatesElsewhere }
}

extension Database {
    fileprivate func save(_ change: DeviceChange) throws -> SaveOutcome {
        let (before, after) = (change.before, change.after)
        if change.replacesKey, try binding(of: after.key.thumbprint) != nil { return .keyTaken }
        if change.replacesAppAttest,
            try isAttestedKeyTaken(after.appAttest, app: after.appID, device: after.deviceID)
        {
            return .keyTaken
        }
        var columns = [
            "status", "key", "key_thumbprint", "previous_key", "previous_key_until", "assurance", "key_rotated_at",
            "must_rotate_by", "must_rotate_reason", "admitted_under_observation", "version", "app_version",
        ]
        var values: StatementArguments = [
            after.status.rawValue, after.key.spki.data, after.key.thumbprint, after.previousKey?.spki.data,
            after.previousKeyUntil?.seconds, after.assurance.storedText, after.keyRotatedAt?.seconds,
            after.mustRotate?.by.seconds, after.mustRotate?.reason.rawValue, after.admittedUnderObservation,
            before.version + 1, after.appVersion,
        ]
        if let endedAt = change.endedAt {
            columns.append("ended_at")
            values += [endedAt?.seconds]
        }
        if change.lowersScheme {
            columns.append("highest_scheme")
            values += [after.highestScheme.rawValue]
        }
        if change.replacesAppAttest {
            columns += AppAttestKeyState.columns
            values += AppAttestKeyState.arguments(after.appAttest)
        }
        var sql = """
            UPDATE devices SET \(columns.map { "\($0) = ?" }.joined(separator: ", "))
            WHERE device_id = ? AND app_id = ? AND version = ?
            """
        values += [before.deviceID.text, before.appID.text, before.version]
        if change.replacesAppAttest {
            sql += " AND coalesce(attested_counter, 0) = ? AND highest_scheme = ?"
            values += [Int64(before.appAttest?.counter ?? 0), before.highestScheme.rawValue]
        }
        guard try self.change(sql, values, recording: change.event) == 1 else { return .conflict }
        if change.replacesKey {
            try moveKeys(of: after.deviceID, from: .previous, to: .retired)
            try moveKeys(of: after.deviceID, from: .current, to: .previous)
            try bind(after.key, to: after.deviceID, as: .current)
        }
        return .saved
    }

    fileprivate func insert(_ device: DeviceRecord) throws {
        let columns =
            [
                "device_id", "app_id", "platform", "status", "key", "key_thumbprint", "previous_key",
                "previous_key_until", "assurance", "registered_at", "key_rotated_at", "last_seen", "highest_scheme",
                "must_rotate_by", "must_rotate_reason", "admitted_under_observation", "local_id", "version",
                "app_version",
            ] + AppAttestKeyState.columns
        let values: StatementArguments = [
            device.deviceID.text, device.appID.text, device.platform.rawValue, device.status.rawValue,
            device.key.spki.data, device.key.thumbprint, device.previousKey?.spki.data,
            device.previousKeyUntil?.seconds, device.assurance.storedText, device.registeredAt.seconds,
            device.keyRotatedAt?.seconds, device.lastSeen?.seconds, device.highestScheme.rawValue,
            device.mustRotate?.by.seconds, device.mustRotate?.reason.rawValue, device.admittedUnderObservation,
            device.localID, device.version, device.appVersion,
        ]
        try cachedStatement(
            sql: """
                INSERT INTO devices (\(columns.joined(separator: ", ")))
                VALUES (\(databaseQuestionMarks(count: columns.count)))
                """
        ).execute(arguments: values + AppAttestKeyState.arguments(device.appAttest))
        try DeviceHashTable.add(device.deviceID, to: self)
    }
}
