internal import AuthService
internal import Logging

/// Logs the signed head of the audit log: at the start, every hour and at the end. Logs usually leave the machine, so an attacker
/// on the machine cannot change the heads in them.
struct AuditHeadLog: Sendable {
    let trail: AuditTrail
    let logger: Logger
    let metrics: ServerMetrics

    static let interval: Duration = .seconds(3600)

    /// Logs until the wait is cancelled, and once more at the end.
    func run(waiting wait: (Duration) async throws -> Void = { try await Task.sleep(for: $0) }) async {
        var last: AuditHead?
        repeat { last = await writeToEnd(after: last) } while (try? await wait(Self.interval)) != nil
        _ = await writeToEnd(after: last)
    }

    /// Writes in a separate task: a stop cancels the calling task, and a store does not answer a cancelled caller.
    private func writeToEnd(after last: AuditHead?) async -> AuditHead? {
        await Task { await write(after: last) }.value
    }

    /// Logs and returns the current head. First checks that the log still contains `last`. Returns `last` if the log cannot be
    /// read.
    func write(after last: AuditHead?) async -> AuditHead? {
        do {
            if let last, try await trail.compare(last) != .intact {
                metrics.securityEvent(.auditLogTampered)
                logger.critical(
                    "the audit log does not contain its last head: it was cut or rewritten",
                    metadata: ["head": "\(last)"])
            }
            let head = try await trail.head()
            logger.notice("audit head", metadata: ["head": "\(head)", "sequence": .stringConvertible(head.sequence)])
            return head
        } catch {
            logger.error("the audit head was not logged", metadata: ["reason": "\(error)"])
            return last
        }
    }
}
