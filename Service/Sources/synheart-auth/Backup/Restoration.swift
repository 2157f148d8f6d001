import AuthContract
import AuthService
import StrictJSON

/// The last steps of a restore: check the new database's audit log, and append the restore to it.
struct Restoration: Sendable {
    let contents: BackupContents
    let key: ServiceKey
    /// The folder with the archives of the audit log; nil: it is not configured.
    let archive: AuditArchiveFolder?

    /// The result of a restore.
    struct Outcome: Sendable {
        /// The seconds for which the restored service refuses current requests after its first start.
        var refusal: Int64 = 0
        /// The missing archive files, which the restore could not check.
        var unchecked: [String] = []

        /// The lines about unchecked files, which follow the other lines of the output; empty: all files were checked.
        var warning: String {
            guard let first = unchecked.first else { return "" }
            let rest = unchecked.count - 1
            return """


                Not all archives of the audit log were checked. These files are not in the folder of audit.archive:
                  \(first)\(rest > 0 ? ", and \(rest) more, up to \(unchecked[rest])" : "")
                Put them there, then run `synheart-auth audit verify`.
                """
        }
    }

    /// Checks the new database's audit log with the archive files that exist, and appends the restore to the log.
    ///
    /// - Parameter advice: appended to the text of a refusal.
    func complete(_ stores: any StoreEngine, else advice: String = "") async throws -> Outcome {
        var service = AuthService(stores: stores.all, key: key)
        service.auditTrail.folder = archive
        let missing = try await service.auditTrail.missingArchives()
        // Reading the backup has already checked the last seal of the archives, and that they connect to the log.
        let finding = try await service.auditTrail.verify(against: contents.head, skipsMissing: true)
        guard finding == .intact else { throw CommandFailure(.refused, Self.sentence(finding) + advice) }
        try await stores.all.audit.append(
            AuditEvent(
                .databaseRestored, at: service.clock.now, actor: SystemUser.actor,
                detail: JSONObject([
                    ("taken_at", .string(contents.takenAt.iso8601)), ("audit_head", .string(contents.head.description)),
                ])))
        return Outcome(
            refusal: max(await service.apps.widestFutureWindow(), ClaimHistory.leastWindow), unchecked: missing)
    }

    private static func sentence(_ finding: AuditCheckResult) -> String {
        switch finding {
        case .archiveMissing(let first), .archiveBroken(let first):
            "the archive of the audit log that begins with event \(first) is changed, or not signed by this service: "
                + "put back a copy of its file, or restore without audit.archive, which checks no file"
        case .brokenLink(let sequence):
            "the audit log is changed at event \(sequence) after the restore, or in its archives: do not use the new database"
        case .intact, .cut, .rewritten, .headOfOtherKey:
            "the audit log is not whole after the restore: do not use the new database"
        }
    }
}
