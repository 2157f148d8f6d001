public import AuthService
internal import Foundation
public import Logging

/// The default stores: everything of one service in one SQLite file, with a journal of replay claims beside it.
///
/// Apps, devices and audit events are durable when a call returns (WAL, `synchronous=FULL`). Replay claims survive the end
/// of the process in any way; after a loss of power `ClaimJournal` says what it cannot know. Challenges are held in memory
/// and saved by `close()`.
///
/// Several processes may have the file open, but only one of them in the role of the service.
public final class SQLiteStores: Sendable {
    /// What the process that opens the file is.
    public enum Role: Sendable {
        /// The service itself: there is one.
        case service
        /// A tool beside it: apps, devices and audit; `challenges` and `replay` refuse.
        case administration
    }

    /// What can be set.
    public struct Options: Sendable {
        /// The longest that a call takes.
        public var deadline: Duration = .seconds(2)
        /// How long one process waits for another's transaction; shorter than the deadline.
        public var busyTimeout: Duration = .milliseconds(1500)
        /// How often the file is looked at for changes by others.
        public var pollInterval: Duration = .milliseconds(250)
        /// Challenges held at once; beyond it the oldest of the busiest source is evicted.
        public var maximumChallenges = 100_000
        /// Live replay claims at once; beyond it claims are refused. About 30 bytes of memory each.
        public var maximumClaims = 24_000_000
        /// Who is told of each call; nil: nobody.
        public var observer: (any StoreObserver)?

        /// The defaults.
        public init() {}
    }

    public let apps: any AppStore
    public let devices: any DeviceStore
    public let audit: any AuditLog
    public let challenges: any ChallengeStore
    public let replay: any ReplayStore
    public let credentials: any CredentialStore
    public let signingKeys: any SigningKeyStore
    public let receipts: any ReceiptStore
    public let pendingProofs: any PendingProofStore
    public let evidence: any EvidenceStore
    public let serviceKeys: any ServiceKeyStore

    /// All of them, as the service takes them.
    public var all: AuthService.Stores {
        AuthService.Stores(
            challenges: challenges, replay: replay, apps: apps, devices: devices, audit: audit,
            credentials: credentials, signingKeys: signingKeys, pendingProofs: pendingProofs, evidence: evidence)
    }

    /// Replay claims that live now; nil where this process is not the service.
    public var liveClaims: Int? { journal?.size.live }

    let database: StoreDatabase
    let freeSpace: FreeSpace
    private let heldChallenges: HeldChallenges?
    private let journal: ClaimJournal?
    /// Keeps in the database what the journal has become.
    private let noting: Task<Void, Never>?
    private let endNotes: AsyncStream<JournalNote>.Continuation?

    /// The file's own path, after every link: what belongs to the database lies beside it.
    ///
    /// - Throws: `OpenError` where the folder does not exist.
    public static func resolvedPath(_ path: String) throws(OpenError) -> String { try DatabasePath.resolve(path) }

    /// Whether there is a database at a path: a file that is not empty.
    public static func hasDatabase(at path: String) -> Bool { DatabasePath.hasContent(path) }

    /// Throws where the file at a path is there and is no database of ours; changes nothing.
    public static func checkFile(_ path: String) throws(OpenError) {
        let path = try DatabasePath.resolve(path)
        try DatabasePath.checkKind(path)
        do { try DatabaseFile.inspect(path) { _ in } } catch { throw DatabaseFile.openError(error, path) }
    }

    /// Opens the file, and makes it where it is not there.
    ///
    /// - Parameters:
    ///   - path: the file, or a link to it; claims go to the folder `<path>-claims` beside the file itself.
    ///   - role: what this process is.
    ///   - options: deadlines and bounds.
    ///   - clock: the service's clock.
    ///   - logger: what was found at opening and what fails in the background.
    public convenience init(
        path: String, role: Role = .service, options: Options = Options(), clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.stores")
    ) throws(OpenError) {
        try self.init(
            path: path, role: role, options: options, clock: clock, logger: logger, boot: BootIdentity.current)
    }

    init(
        path: String, role: Role, options: Options, clock: any ServiceClock, logger: Logger, boot: BootIdentity
    ) throws(OpenError) {
        let path = try DatabasePath.resolve(path)
        let database = try StoreDatabase(path: path, options: options)
        self.database = database
        freeSpace = FreeSpace(deadline: options.deadline) { [path, path + "-claims"].compactMap(Self.freeBytes).min() }
        apps = SQLiteAppStore(database: database)
        devices = SQLiteDeviceStore(database: database, rotatesElsewhere: role != .service)
        audit = SQLiteAuditLog(database: database)
        credentials = SQLiteCredentialStore(database: database)
        signingKeys = SQLiteSigningKeyStore(database: database)
        receipts = SQLiteReceiptStore(database: database)
        pendingProofs = SQLitePendingProofStore(database: database)
        evidence = SQLiteEvidenceStore(database: database)
        serviceKeys = SQLiteServiceKeyStore(database: database)
        switch role {
        case .administration:
            (heldChallenges, journal, noting, endNotes) = (nil, nil, nil, nil)
            (challenges, replay) = (RefusingStores(), RefusingStores())
        case .service:
            let (notes, continuation) = AsyncStream.makeStream(
                of: JournalNote.self, bufferingPolicy: .bufferingNewest(1))
            let journal = try ClaimJournal(
                folder: path + "-claims",
                settings: .init(maximumClaims: options.maximumClaims, deadline: options.deadline),
                expecting: try database.journalExpectation(), boot: boot, now: clock.now, logger: logger
            ) { continuation.yield($0) }
            try database.note(journal.note)
            noting = Task { for await note in notes { await database.keep(note) } }
            endNotes = continuation
            let held = HeldChallenges(clock: clock, maximum: options.maximumChallenges)
            held.restore(try database.takeSavedChallenges())
            (heldChallenges, challenges) = (held, held)
            self.journal = journal
            replay = options.observer.map { ObservedReplay(journal, by: $0) } ?? journal
        }
    }

    /// Saves what is held in memory and lets go of the files. Calls under way are answered, later ones refused.
    public func close() async {
        if let heldChallenges { await database.save(heldChallenges.drain()) }
        await journal?.close()
        endNotes?.finish()
        await noting?.value
        if let journal { await database.keep(journal.note) }
        await database.close()
    }
}
