internal import AuthContract
internal import AuthService

/// The statements for one page of devices, with conditions for the values that the query sets.
enum DeviceListing {
    /// The statement for the ids of one page, without deregistered devices.
    static func ids(after: DeviceQuery.PageToken?, limit: Int) -> Statement {
        var query = DeviceQuery(limit: limit)
        query.after = after
        return statement(query, selecting: "device_id, registered_at", except: .deregistered)
    }

    static func statement(
        _ query: DeviceQuery, selecting columns: String = DeviceRecord.selection, except status: DeviceStatus? = nil
    ) -> Statement {
        var conditions = ["NOT forgotten"]
        var parameters: [Parameter] = []
        func require(_ condition: (String) -> String, _ value: Parameter) {
            parameters.append(value)
            conditions.append(condition("$\(parameters.count)"))
        }
        if let app = query.appID { require({ "app_id = \($0)" }, .text(app.text)) }
        if query.scope != .allApps {
            require({ "app_id = ANY (\($0))" }, .texts(query.scope.named.map(\.text)))
        }
        if let id = query.deviceID { require({ "device_id = \($0)" }, .uuid(id)) }
        var table = "devices"
        if let hash = query.deviceHash {
            // OFFSET keeps the other conditions out of the subquery. If they were in it, a plan without statistics would scan an
            // index of the app's devices, and read all of them.
            parameters.append(.bytes(hash.bytes))
            table =
                "(SELECT * FROM devices WHERE \(Schema.deviceHash) = $\(parameters.count) OFFSET 0) AS devices"
        }
        if let status = query.status { require({ "status = \($0)" }, .text(status.rawValue)) }
        // Without this condition, a generic plan does not use the partial index.
        if query.listsUnregisteredOfAllApps { conditions.append("status <> 'registered'") }
        if let platform = query.platform { require({ "platform = \($0)" }, .text(platform.rawValue)) }
        // A forgotten device has the time 0, so this keeps the index scan from reading forgotten devices.
        require({ "registered_at >= \($0)" }, .integer(max(query.registeredFrom?.seconds ?? 1, 1)))
        if let before = query.registeredBefore { require({ "registered_at < \($0)" }, .time(before)) }
        if let after = query.after {
            let (time, id) = query.order == .newest ? ("<", ">") : (">", "<")
            // The first condition is where the index scan starts: at the time of the last device of the page before. The second
            // condition skips devices with the same time that earlier pages had.
            require({ "registered_at \(time)= \($0)" }, .time(after.registeredAt))
            let number = parameters.count
            require({ "(registered_at \(time) $\(number) OR device_id \(id) \($0))" }, .uuid(after.deviceID))
        }
        if let status { require({ "status <> \($0)" }, .text(status.rawValue)) }
        parameters.append(.integer(Int64(query.limit)))
        let order = query.order == .newest ? "registered_at DESC, device_id" : "registered_at, device_id DESC"
        return Statement(
            """
            SELECT \(columns) FROM \(table) WHERE \(conditions.joined(separator: " AND "))
            ORDER BY \(order) LIMIT $\(parameters.count)
            """, parameters)
    }
}
