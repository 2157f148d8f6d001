internal import Bytes
internal import CPostgreSQL

/// Records the server's warning that it committed but no longer waits for a replica.
final class ReplicationWarning: Sendable {
    private let isHeard = Locked(false)

    /// Receives the notices of a connection. The connection must not outlive this object.
    func listen(on handle: OpaquePointer) {
        let hear: PQnoticeReceiver = { warning, notice in
            guard let warning, let notice, ReplicationWarning.isOne(notice) else { return }
            Unmanaged<ReplicationWarning>.fromOpaque(warning).takeUnretainedValue().isHeard.withLock { $0 = true }
        }
        PQsetNoticeReceiver(handle, hear, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Whether a warning arrived since the last call of `discard`.
    var isPresent: Bool { isHeard.withLock { $0 } }

    /// Forgets a warning.
    func discard() { isHeard.withLock { $0 = false } }

    /// Whether a notice is the warning that the server no longer waits for a replica. Only the notice's severity and code are compared,
    /// because the message is in the server's language. Other warnings have the same codes, but no statement of the stores causes one.
    private static func isOne(_ notice: OpaquePointer) -> Bool {
        func field(_ code: UnicodeScalar) -> String {
            PQresultErrorField(notice, Int32(code.value)).map { String(cString: $0) } ?? ""
        }
        // V: the severity in English. C: SQLSTATE; 01000: a plain warning, 57P01: the server also ends the connection.
        return field("V") == "WARNING" && ["01000", "57P01"].contains(field("C"))
    }
}
