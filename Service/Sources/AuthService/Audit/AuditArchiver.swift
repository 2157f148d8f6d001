internal import AuthContract
internal import Crypto
public import Logging

/// Moves old events of the audit log to archive files, in the background.
///
/// A file is complete and durable before its `StoredAuditArchive` is stored. That row is stored before the first of the file's
/// events is removed from the log. So a crash at any point loses nothing, and the next run continues. Events are removed in
/// steps of 1,000.
public struct AuditArchiver: Sendable {
    private let trail: AuditTrail
    private let folder: AuditArchiveFolder
    private let keepDays: Int64
    private let clock: any ServiceClock
    private let logger: Logger

    private static let page = 1000
    /// If at least this many events are due, an archive is written at once. Fewer wait up to a day, to avoid a file for each hour.
    private static let minimumEvents = 1000
    static let interval: Duration = .seconds(3600)

    /// An archiver of a service.
    ///
    /// - Parameters:
    ///   - service: the service whose audit log is archived.
    ///   - folder: the folder for the archive files.
    ///   - keepDays: the age in days from which events are moved.
    ///   - logger: receives a line about each archive, with the numbers of its events.
    public init(
        of service: AuthService, to folder: AuditArchiveFolder, keepDays: Int64,
        logger: Logger = Logger(label: "synheart.archive")
    ) {
        (trail, clock) = (service.auditTrail, service.clock)
        (self.folder, self.keepDays, self.logger) = (folder, keepDays, logger)
    }

    /// Archives every hour, until the task is cancelled.
    public func run() async {
        repeat {
            await folder.removeUnfinished()
            do { while try await archiveNext() {} } catch {
                logger.error("audit events were not archived", metadata: ["reason": "\(error)"])
            }
        } while (try? await Task.sleep(for: Self.interval)) != nil
    }

    /// Writes the next archive, and removes its events.
    ///
    /// - Returns: whether another archive may be due.
    func archiveNext() async throws -> Bool {
        guard let store = trail.archives else { return false }
        // After a crash, the log may still have events of the last archive.
        try await remove(from: store)
        let last = try await store.auditArchives().last
        let start = AuditLink(sequence: last?.last ?? 0, hash: last?.hash ?? AuditChain.origin)
        let (entries, end, oldest) = try await due(after: start, in: store)
        guard let first = entries.first else { return false }
        let isOverdue = oldest < cutoff.seconds - 86_400
        guard entries.count >= Self.minimumEvents || isOverdue else { return false }
        let seal = try await folder.add(entries, sealedBy: try trail.sign(.archive, end))
        var former: [Curve25519.Signing.PublicKey]?
        guard try await trail.isGenuine(seal, &former) else {
            let file = folder.file(first: first.entry.sequence, last: end.sequence)
            throw StoreError(.unavailable, "\(file) exists, and its seal is not of this service: move the file")
        }
        let archive = StoredAuditArchive(
            first: first.entry.sequence, last: end.sequence, hash: end.hash, seal: seal.description)
        // If another node stored an archive first, that archive is the valid one. If this node's file has another name, the
        // file stays unused.
        guard try await store.add(archive) else { return true }
        logger.notice(
            "audit events were archived",
            metadata: [
                "first": .stringConvertible(archive.first), "last": .stringConvertible(archive.last),
                "file": "\(folder.file(first: archive.first, last: archive.last))",
            ])
        try await remove(from: store)
        return true
    }

    private var cutoff: UnixTime { clock.now - keepDays * 86_400 }

    /// The next events that are old enough, the link of the last one, and the time of the first one. The log's last event is never
    /// among them.
    private func due(
        after start: AuditLink, in store: any AuditArchiveStore
    ) async throws -> (entries: [StoredAuditEntry], end: AuditLink, oldest: Int64) {
        var (entries, link, bytes, oldest) = ([StoredAuditEntry](), start, 0, Int64.max)
        while entries.count < AuditArchiveFolder.maximumEvents, bytes < AuditArchiveFolder.maximumBytes {
            // The last event of a page is not used yet: it may be the log's last one, which stays in the log.
            let page = try await store.auditEntries(after: link.sequence, limit: Self.page)
            // If a wrong clock dated an event ahead, use the time of the next event for it. Otherwise the event and all events after
            // it would stay in the log.
            var (next, now) = (Int64.max, clock.now.seconds)
            let times = page.reversed().map { stored in
                next = stored.entry.at > now ? min(next, stored.entry.at) : stored.entry.at
                return next
            }
            for (stored, time) in zip(page.dropLast(), times.reversed()) {
                guard time < cutoff.seconds, entries.count < AuditArchiveFolder.maximumEvents,
                    bytes < AuditArchiveFolder.maximumBytes
                else { return (entries, link, oldest) }
                guard let next = link.next(stored) else {
                    throw StoreError(.unreadable, "event \(link.sequence + 1) does not continue the chain")
                }
                (link, bytes) = (next, bytes + stored.entry.detail.utf8.count + 256)
                if entries.isEmpty { oldest = time }
                entries.append(stored)
            }
            guard page.count == Self.page else { break }
        }
        return (entries, link, oldest)
    }

    private func remove(from store: any AuditArchiveStore) async throws(StoreError) {
        while try await store.removeArchivedEvents(limit: Self.page) == Self.page {}
    }
}
