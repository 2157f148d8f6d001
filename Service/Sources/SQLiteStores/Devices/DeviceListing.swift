internal import AuthContract
internal import AuthService
internal import GRDB

/// The statements for one page of devices.
enum DeviceListing {
    /// The statement for the ids of one page, without deregistered devices.
    static func ids(after: DeviceQuery.PageToken?, limit: Int) -> (sql: String, arguments: StatementArguments) {
        var query = DeviceQuery(limit: limit)
        query.after = after
        return statement(query, selecting: "device_id, registered_at", except: .deregistered)
    }

    static func statement(
        _ query: DeviceQuery, selecting columns: String = "*", except status: DeviceStatus? = nil
    ) -> (sql: String, arguments: StatementArguments) {
        var conditions = ["forgotten = 0"]
        var arguments: StatementArguments = []
        func require(_ condition: String, _ values: StatementArguments) {
            conditions.append(condition)
            arguments += values
        }
        if let app = query.appID { require("app_id = ?", [app.text]) }
        if query.scope != .allApps {
            require("app_id IN (SELECT value FROM json_each(?))", [query.scope.storedText])
        }
        if let id = query.deviceID { require("device_id = ?", [id.text]) }
        // Without the hint, the planner reads all devices of the app, in the order of the page.
        let index = query.deviceHash == nil ? "" : " INDEXED BY sqlite_autoindex_devices_1"
        if let hash = query.deviceHash {
            require("device_id IN (SELECT device_id FROM device_hashes WHERE hash = ?)", [hash.bytes.data])
        }
        if let status = query.status { require("status = ?", [status.rawValue]) }
        // Without this condition, SQLite does not use the partial index.
        if query.listsUnregisteredOfAllApps { conditions.append("status <> 'registered'") }
        if let platform = query.platform { require("platform = ?", [platform.rawValue]) }
        // A forgotten device has the time 0, so this keeps the index scan from reading forgotten devices.
        var from = max(query.registeredFrom?.seconds ?? 1, 1)
        if query.order == .oldest, let after = query.after { from = max(from, after.registeredAt.seconds) }
        require("registered_at >= ?", [from])
        if let before = query.registeredBefore { require("registered_at < ?", [before.seconds]) }
        if let after = query.after {
            let (time, id) = query.order == .newest ? ("<", ">") : (">", "<")
            // The index scan starts at the time of the last device of the page before. For `newest`, the first condition sets this
            // start. For `oldest`, `from` does. The second condition skips devices with the same time that earlier pages had.
            if query.order == .newest { require("registered_at <= ?", [after.registeredAt.seconds]) }
            require(
                "(registered_at \(time) ? OR device_id \(id) ?)", [after.registeredAt.seconds, after.deviceID.text])
        }
        if let status { require("status <> ?", [status.rawValue]) }
        arguments += [query.limit]
        let order = query.order == .newest ? "registered_at DESC, device_id" : "registered_at, device_id DESC"
        return (
            """
            SELECT \(columns) FROM devices\(index) WHERE \(conditions.joined(separator: " AND "))
            ORDER BY \(order) LIMIT ?
            """, arguments
        )
    }
}
