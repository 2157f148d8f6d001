internal import AuthService
internal import CPostgreSQL

/// Why a statement failed.
struct ServerFailure: Sendable {
    /// The five characters of SQLSTATE; empty if the connection was lost.
    let state: String
    /// One sentence from the server, without values of rows. If the connection was lost, the reason.
    let message: String

    static func lost(_ message: String) -> ServerFailure { ServerFailure(state: "", message: message) }

    init(state: String, message: String) {
        self.state = state
        self.message = message
    }

    /// The error in a result.
    init(_ result: OpaquePointer) {
        func field(_ code: UnicodeScalar) -> String? {
            PQresultErrorField(result, Int32(code.value)).map { String(cString: $0) }
        }
        // C: SQLSTATE, M: the primary message. The detail is not read, because it may quote rows.
        self.init(state: field("C") ?? "", message: field("M") ?? "the connection was lost")
    }

    /// The SQLSTATE of a statement that waited longer than `lock_timeout`.
    static let lockTimeout = "55P03"

    var isLost: Bool { state.isEmpty }

    /// Whether a new attempt of the same transaction may succeed: after a serialization failure, a deadlock, a stale prepared
    /// statement, or a row that another transaction inserted concurrently. The next attempt's checks read that row.
    var isRetryable: Bool { ["40001", "40P01", "23505"].contains(state) || isStalePlan }

    /// Whether a prepared statement no longer fits the tables, such as after a migration, or the server does not know it.
    var isStalePlan: Bool { ["0A000", "26000"].contains(state) }

    /// Whether the connection must be closed: it was lost, its server shuts down or no longer accepts writes, or a prepared
    /// statement is stale.
    var endsConnection: Bool {
        isLost || isStalePlan || state.hasPrefix("57P") || state.hasPrefix("08") || state == "25006"
    }

    var storeError: StoreError {
        StoreError(code, "PostgreSQL: \(message)" + (state.isEmpty ? "" : " (\(state))"))
    }

    private var code: StoreError.Code {
        switch state {
        // A cancelled statement, a lock timeout, or a transaction that was idle for too long.
        case "57014", Self.lockTimeout, "25P03": .tooSlow
        // A missing table, column or function, or damaged pages.
        case "42P01", "42703", "42883", "XX001", "XX002": .unreadable
        case _ where state.hasPrefix("22"): .unreadable
        default: .unavailable
        }
    }
}
