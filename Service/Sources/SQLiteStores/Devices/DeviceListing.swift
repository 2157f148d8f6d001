internal import AuthContract
internal import AuthService
internal import GRDB

/// The statement for one page of devices. Each condition adds a column of an index.
enum DeviceListing {
    static func statement(_ query: DeviceQuery) -> (sql: String, arguments: StatementArguments) {
        var conditions = ["TRUE"]
        var arguments: StatementArguments = []
        func require(_ condition: String, _ values: StatementArguments) {
            conditions.append(condition)
            arguments += values
        }
        if let app = query.appID { require("app_id = ?", [app.text]) }
        if let status = query.status { require("status = ?", [status.rawValue]) }
        if let platform = query.platform { require("platform = ?", [platform.rawValue]) }
        if let from = query.registeredFrom { require("registered_at >= ?", [from.seconds]) }
        if let before = query.registeredBefore { require("registered_at < ?", [before.seconds]) }
        if let after = query.after {
            // The index starts at the first comparison. The second one separates devices of the same second.
            require("registered_at <= ?", [after.registeredAt.seconds])
            require("(registered_at < ? OR device_id > ?)", [after.registeredAt.seconds, after.deviceID.text])
        }
        arguments += [query.limit]
        return (
            """
            SELECT * FROM devices WHERE \(conditions.joined(separator: " AND "))
            ORDER BY registered_at DESC, device_id LIMIT ?
            """, arguments
        )
    }
}
