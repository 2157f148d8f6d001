internal import AuthService
internal import CPostgreSQL

/// Why a statement failed.
struct ServerFailure: Sendable {
    /// The five characters of SQLSTATE; empty if the connection was lost.
    let state: String
    /// One sentence: the server's, without the values of rows.
    let message: String

    static func lost(_ message: String) -> ServerFailure { ServerFailure(state: "", message: message) }

    init(state: String, message: String) {
        self.state = state
        self.message = message
    }

    /// The error that a result holds.
    init(_ result: OpaquePointer) {
        func field(_ code: UnicodeScalar) -> String? {
            PQresultErrorField(result, Int32(code.value)).map { String(cString: $0) }
        }
        // C: SQLSTATE, M: the primary message. The detail may quote rows.
        self.init(state: field("C") ?? "", message: field("M") ?? "the connection was lost")
    }

    var isLost: Bool { state.isEmpty }

    /// Whether the same transaction may succeed when it starts again: a serialization failure, a deadlock, or a row that
    /// another transaction inserted at the same time, which the checks before the insertion now see.
    var isRetryable: Bool { ["40001", "40P01", "23505"].contains(state) || isStalePlan }

    /// Whether the connection prepared a statement that no longer fits, such as after a migration.
    var isStalePlan: Bool { ["0A000", "26000"].contains(state) }

    /// Whether the connection is of no further use: it leads to a server that shuts down or no longer takes writes.
    var endsConnection: Bool {
        isLost || isStalePlan || state.hasPrefix("57P") || state.hasPrefix("08") || state == "25006"
    }

    var storeError: StoreError {
        StoreError(code, "PostgreSQL: \(message)" + (state.isEmpty ? "" : " (\(state))"))
    }

    private var code: StoreError.Code {
        switch state {
        // Cancelled, a lock not granted, idle for too long in a transaction.
        case "57014", "55P03", "25P03": .tooSlow
        // A table, column or function that is not there, and damaged pages.
        case "42P01", "42703", "42883", "XX001", "XX002": .unreadable
        case _ where state.hasPrefix("22"): .unreadable
        default: .unavailable
        }
    }
}
