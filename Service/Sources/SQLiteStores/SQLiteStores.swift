public import AuthService
internal import Foundation
public import Logging

/// The default stores: one SQLite file, and a journal of replay claims in a folder next to it.
///
/// Apps, devices and audit events are durable when a call returns (WAL, `synchronous=FULL`). Replay claims survive the end of
/// the process, however the process ends. After a loss of power, `ClaimJournal` refuses requests whose claims it may have lost.
/// Challenges are in memory, and `close()` saves them.
///
/// Several processes may have the file open. Only one of them may be the service.
public final class SQLiteStores: Sendable {
    /// The role of the process that opens the file.
    public enum Role: Sendable {
        /// The service. Only one may run.
        case service
        /// A tool that runs next to the service. `challenges` and `replay` refuse every call.
        case administration
        /// A tool that moves the rows to another engine, or undoes a move. It has the rights of `administration`, and may also open
        /// a moved database.
        case move
    }

    /// Deadlines and bounds.
    public struct Options: Sendable {
        /// The longest time of a call.
        public var deadline: Duration = .seconds(2)
        /// How long one process waits for another's transaction. It must be shorter than the deadline.
        public var busyTimeout: Duration = .milliseconds(1500)
        /// The interval between polls of the file for changes by other processes.
        public var pollInterval: Duration = .milliseconds(250)
        /// The largest number of challenges. Beyond it, the oldest challenge of the busiest source is evicted.
        public var maximumChallenges = 100_000
        /// The largest number of live replay claims. Beyond it, claims are refused. A claim takes about 30 bytes of memory.
        public var maximumClaims = 24_000_000
        /// Observes each call; nil for no observer.
        public var observer: (any StoreObserver)?

        /// The defaults.
        public init() {}
    }

    /// App records, with sealed secrets.
    public let apps: any AppStore
    /// Devices, with every key that is or was bound to a device.
    public let devices: any DeviceStore
    /// The audit log. Changes in the other stores append to it in their own transactions.
    public let audit: any AuditLog
    /// Challenges, in memory until `close()` saves them. In a tool, this store refuses every call.
    public let challenges: any ChallengeStore
    /// Replay claims, in the journal. In a tool, this store refuses every call.
    public let replay: any ReplayStore
    /// Credentials, with the hash of the secret.
    public let credentials: any CredentialStore
    /// The keys that sign device tokens, sealed.
    public let signingKeys: any SigningKeyStore
    /// The App Attest receipts of devices, and when each must be exchanged for a newer one.
    public let receipts: any ReceiptStore
    /// Sealed proofs that their provider, such as Google, has not checked yet.
    public let pendingProofs: any PendingProofStore
    /// Recorded refusals, sealed.
    public let recordings: any RecordingStore
    /// Counts of verdicts by time.
    public let history: any VerdictHistoryStore
    /// The archives of the audit log.
    public let auditArchives: any AuditArchiveStore
    /// Forgets devices that were deregistered or rejected long ago.
    public let endedDevices: any EndedDeviceStore
    /// The version of the service that started last.
    public let versions: any VersionStore
    /// Webhooks, with sealed secrets.
    public let webhooks: any WebhookStore
    /// The check values of the service key, and every row that it sealed.
    public let serviceKeys: any ServiceKeyStore

    /// The stores that `AuthService` takes: all except `receipts` and `serviceKeys`.
    public var all: AuthService.Stores {
        AuthService.Stores(
            challenges: challenges, replay: replay, apps: apps, devices: devices, audit: audit,
            credentials: credentials, signingKeys: signingKeys, pendingProofs: pendingProofs, recordings: recordings,
            history: history, webhooks: webhooks, auditArchives: auditArchives, endedDevices: endedDevices,
            versions: versions)
    }

    /// The lock that a service holds while it uses the file. A command takes it to exclude the service.
    public var lock: any ServiceLock { SQLiteServiceLock(database: database.path) }

    /// The number of live replay claims; nil if this process is not the service.
    public var liveClaims: Int? { journal?.size.live }

    let database: StoreDatabase
    let freeSpace: FreeSpace
    private let heldChallenges: InMemoryChallengeStore?
    private let journal: ClaimJournal?
    /// The task that records the journal's state in the database. Nil in a tool.
    private let noting: Task<Void, Never>?
    private let endNotes: AsyncStream<JournalNote>.Continuation?

    /// The path of the file with every link resolved. The database's other files are next to it.
    ///
    /// - Throws: `StoreOpenError` if the folder does not exist or a link cannot be resolved.
    public static func resolvedPath(_ path: String) throws(StoreOpenError) -> String { try DatabasePath.resolve(path) }

    /// Whether there is a database at a path: a file that is not empty.
    public static func hasDatabase(at path: String) -> Bool { DatabasePath.hasContent(path) }

    /// Throws if the database at a path was lost: it is missing, but a service uses it or its claim journal still exists.
    ///
    /// A service on a new database would know no device, and phones whose device is unknown give up their identity.
    ///
    /// - Parameter path: the database's own path (`resolvedPath`).
    public static func requireNotLost(_ path: String) throws(StoreOpenError) {
        guard !DatabasePath.hasContent(path) else { return }
        let hasSegments = try JournalFolder.hasSegments(path + "-claims")
        let isServed = isServed(path)
        // Look again: a service that starts for the first time may have created the file meanwhile.
        guard !DatabasePath.hasContent(path) else { return }
        guard !isServed else {
            throw StoreOpenError(
                .inUse,
                "\(path) is gone, and a service still uses it: put the file back, or stop the service and restore a backup."
            )
        }
        guard !hasSegments else {
            throw StoreOpenError(
                .lost,
                "\(path) is gone, and its claims are still in \(path)-claims: put the file back, or restore a backup. "
                    + "To begin without its apps and devices, move \(path)-claims away too.")
        }
    }

    /// Throws if the file at a path cannot be read as a database of this service. Does not change the file.
    public static func checkFile(_ path: String) throws(StoreOpenError) {
        let path = try DatabasePath.resolve(path)
        try DatabasePath.checkKind(path)
        do { try DatabaseFile.inspect(path) { _ in } } catch { throw DatabaseFile.openError(error, path) }
    }

    /// Opens the file. Creates or migrates it first if necessary.
    ///
    /// - Parameters:
    ///   - path: the file, or a link to it. Claims are kept in the folder `<path>-claims` next to the file itself.
    ///   - role: the role of this process.
    ///   - options: deadlines and bounds.
    ///   - clock: the service's clock.
    ///   - logger: logs what opening found and what fails in the background.
    public convenience init(
        path: String, role: Role = .service, options: Options = Options(), clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.stores")
    ) throws(StoreOpenError) {
        try self.init(
            path: path, role: role, options: options, clock: clock, logger: logger, boot: BootIdentity.current,
            monotonic: BootIdentity.seconds)
    }

    init(
        path: String, role: Role, options: Options, clock: any ServiceClock, logger: Logger, boot: BootIdentity,
        monotonic: @escaping @Sendable () -> Int64
    ) throws(StoreOpenError) {
        let path = try DatabasePath.resolve(path)
        try Self.requireNotLost(path)
        let database = try StoreDatabase(path: path, options: options)
        if role != .move { try database.requireNotMoved() }
        self.database = database
        freeSpace = FreeSpace(deadline: options.deadline) { [path, path + "-claims"].compactMap(Self.freeBytes).min() }
        apps = SQLiteAppStore(database: database)
        devices = SQLiteDeviceStore(database: database, rotatesElsewhere: role != .service)
        audit = SQLiteAuditLog(database: database)
        webhooks = SQLiteWebhookStore(database: database)
        endedDevices = SQLiteEndedDeviceStore(database: database)
        versions = SQLiteVersionStore(database: database)
        auditArchives = SQLiteAuditArchiveStore(database: database)
        credentials = SQLiteCredentialStore(database: database)
        signingKeys = SQLiteSigningKeyStore(database: database)
        receipts = SQLiteReceiptStore(database: database)
        pendingProofs = SQLitePendingProofStore(database: database)
        recordings = SQLiteRecordingStore(database: database)
        history = SQLiteHistoryStore(database: database)
        serviceKeys = SQLiteServiceKeyStore(database: database)
        switch role {
        case .administration, .move:
            (heldChallenges, journal, noting, endNotes) = (nil, nil, nil, nil)
            let refusing = RefusingStores(reason: "opened for administration, not as the service")
            (challenges, replay) = (refusing, refusing)
        case .service:
            let (notes, continuation) = AsyncStream.makeStream(
                of: JournalNote.self, bufferingPolicy: .bufferingNewest(1))
            let journal = try ClaimJournal(
                folder: path + "-claims",
                settings: .init(
                    maximumClaims: options.maximumClaims, deadline: options.deadline, monotonic: monotonic),
                expecting: try database.journalExpectation(), boot: boot, now: clock.now, logger: logger,
                database: { [database] in database.place }
            ) { continuation.yield($0) }
            try database.note(journal.note)
            noting = Task { for await note in notes { await database.keep(note) } }
            endNotes = continuation
            let held = InMemoryChallengeStore(clock: clock, maximum: options.maximumChallenges)
            held.restore(try database.takeSavedChallenges())
            (heldChallenges, challenges) = (held, held)
            self.journal = journal
            replay = options.observer.map { ObservedReplay(journal, by: $0) } ?? journal
        }
    }

    /// Refuses later changes unless `key` is the service key that seals new values.
    ///
    /// For a command that runs next to the service: the key may be rotated after the command checked it. Values that the
    /// command then sealed with the old key could not be opened later.
    public func allowWrites(whileSealing key: ServiceKeyCheck) { database.allowWrites(whileSealing: key) }

    /// Records that all rows were moved to another engine. From now on the file is a backup, and only `Role.move` can open it.
    ///
    /// - Parameter place: describes the rows' new location, for an operator.
    public func noteMove(to place: String) throws(StoreOpenError) { try database.noteMove(to: place) }

    /// Removes the record of a move. The next service records a loss of history, because the file lacks the other engine's claims.
    ///
    /// - Returns: false if the rows were not moved.
    public func undoMove() async throws(StoreError) -> Bool { try await database.undoMove() }

    /// Saves the challenges and closes the files.
    ///
    /// Running calls are answered. Later calls are refused, except those of `challenges`, which no longer saves anything.
    public func close() async {
        if let heldChallenges { await database.save(heldChallenges.drain()) }
        await journal?.close()
        endNotes?.finish()
        await noting?.value
        // If the files were moved, the note in the database may be that of another service.
        if let journal, journal.isInPlace { await database.keep(journal.note) }
        // Empty the write-ahead log, because an operator may move the file of a stopped service without its log.
        await database.close(emptyingLog: journal != nil)
    }
}
