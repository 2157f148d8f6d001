public import AndroidKeyAttestation
public import AuthContract
public import AuthService
internal import Foundation
public import Logging

/// How revocation lists are kept.
public struct RevocationSettings: Sendable {
    /// A folder for copies, loaded at start; nil: none are kept.
    public var directory: String?
    /// Seconds since a list was last confirmed by its source after which it is not used any more: three days by default.
    /// Nil: used however old.
    public var maximumAgeSeconds: Int64? = 3 * 86_400
    /// The longest that fetching a list takes.
    public var deadline: Duration = .seconds(20)

    /// The defaults.
    public init() {}
}

/// Google's lists of revoked attestation keys
/// ([status](https://developer.android.com/privacy-and-security/security-key-attestation#certificate_status)), by source:
/// fetched in the background, swapped whole, kept on disk.
///
/// A list that cannot be read, or that lost all its entries, never replaces a good one.
public actor RevocationLists {
    private struct Entry {
        let source: ListSource
        let file: KeptListFile?
        var isLoaded = false
        var held: KeptList?
        var dueAt = UnixTime(.min)
        var failures = 0
        var failure: String?
        var fetching: Task<Void, Never>?
    }

    /// Sources come from the records of apps.
    private static let maximumSources = 256

    private let http: ProviderHTTP
    private let settings: RevocationSettings
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let pause: @Sendable (Duration) async throws -> Void
    private let logger: Logger
    private var entries: [String: Entry] = [:]

    /// Lists over one HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - settings: where lists are kept, how old one may be, deadlines.
    ///   - clock: the time that answers are judged by.
    ///   - random: of the waits between two attempts.
    ///   - pause: waits, and throws where the task is cancelled.
    ///   - logger: what was fetched and what failed.
    public init(
        http: ProviderHTTP, settings: RevocationSettings = RevocationSettings(),
        clock: any ServiceClock = SystemClock(), random: any RandomSource = SystemRandom(),
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        logger: Logger = Logger(label: "synheart.revocations")
    ) {
        self.http = http
        self.settings = settings
        self.clock = clock
        self.random = random
        self.pause = pause
        self.logger = logger
    }

    /// The list of a source, where it is young enough. It is waited for only where there is none to be used, and then no
    /// longer than a fetch may take.
    public func list(from source: String) async -> RevocationStatusList? {
        guard await isKnown(source) else { return nil }
        if let list = usable(source) { return list }
        await refreshIfDue(source)
        return usable(source)
    }

    /// Begins to keep lists, from their copies on disk at first: for the sources that the apps name, at start.
    public func keep(_ sources: some Sequence<String> & Sendable) async {
        for source in sources { _ = await isKnown(source) }
    }

    /// Keeps the lists current until the task is cancelled.
    public func run() async {
        while !Task.isCancelled {
            await refreshAll()
            // Short enough for a source that becomes known meanwhile.
            let next = entries.values.map { $0.dueAt - clock.now }.min() ?? 30
            do { try await pause(.seconds(min(max(next, 1), 30))) } catch { return }
        }
    }

    /// How each list stands, by source.
    public func states() -> [RevocationListState] {
        let now = clock.now
        return entries.sorted { $0.key < $1.key }.map { source, entry in
            RevocationListState(
                source: source, entries: entry.held?.list.count, ageSeconds: entry.held.map { now - $0.confirmedAt },
                isUsable: usable(source) != nil, failure: entry.failure)
        }
    }

    func refreshAll() async {
        await withTaskGroup(of: Void.self) { group in
            for source in entries.keys { group.addTask { await self.refreshIfDue(source) } }
        }
    }

    // MARK: One list

    private func usable(_ source: String) -> RevocationStatusList? {
        guard let held = entries[source]?.held else { return nil }
        if let maximum = settings.maximumAgeSeconds, clock.now - held.confirmedAt > maximum { return nil }
        return held.list
    }

    private func isKnown(_ name: String) async -> Bool {
        if entries[name] == nil {
            guard entries.count < Self.maximumSources, let source = ListSource(name) else {
                logger.error("not a source of a status list, or one too many", metadata: ["source": "\(name)"])
                return false
            }
            let file = settings.directory.map { KeptListFile(of: name, in: $0) }
            entries[name] = Entry(source: source, file: file, isLoaded: file == nil)
        }
        guard let entry = entries[name], !entry.isLoaded else { return true }
        let kept = await entry.file?.load(at: clock.now)
        entries[name]?.isLoaded = true
        // Something newer may have come while the file was read.
        if entries[name]?.held == nil { entries[name]?.held = kept }
        return true
    }

    private func refreshIfDue(_ name: String) async {
        guard let entry = entries[name], entry.dueAt <= clock.now || entry.fetching != nil else { return }
        // Not the caller's own task: others wait for it, whatever becomes of this caller. It ends within its deadline.
        let fetch = entry.fetching ?? Task { await self.refresh(name) }
        entries[name]?.fetching = fetch
        await fetch.value
    }

    private func refresh(_ name: String) async {
        defer { entries[name]?.fetching = nil }
        guard let entry = entries[name] else { return }
        do throws(ListSource.Failure) {
            let answer = try await entry.source.fetch(
                over: http, held: entry.held, at: clock.now, within: settings.deadline)
            try accept(answer, for: name)
        } catch { failed(error, name) }
        await save(name)
    }

    private func accept(_ answer: ListSource.Answer, for name: String) throws(ListSource.Failure) {
        let fresh: Int64
        switch answer {
        case .unchanged(let confirmed, let seconds):
            entries[name]?.held?.confirmedAt = confirmed
            fresh = seconds
        case .list(let new, let seconds):
            let before = entries[name]?.held?.list.count ?? 0
            guard new.list.count > 0 || before == 0 else {
                throw ListSource.Failure(description: "the list lost all its \(before) entries: the old one is kept")
            }
            if new.list.count < before / 2 || new.list.count == 0 {
                logger.warning(
                    "a status list became short",
                    metadata: [
                        "source": "\(name)", "before": .stringConvertible(before),
                        "after": .stringConvertible(new.list.count),
                    ])
            }
            entries[name]?.held = new
            fresh = seconds
        }
        entries[name]?.failures = 0
        entries[name]?.failure = nil
        // A little early, so that nodes do not ask in step.
        let jittered = Int64(Double(fresh) * (1 - random.fraction() / 10))
        entries[name]?.dueAt = clock.now + max(jittered, 1)
    }

    private func failed(_ failure: ListSource.Failure, _ name: String) {
        let failures = entries[name]?.failures ?? 0
        let own = min(30 * Double(1 << min(failures, 5)), 900) * (0.5 + random.fraction() / 2)
        entries[name]?.dueAt = clock.now + max(Int64(own), min(failure.retryAfter ?? 0, 3600))
        entries[name]?.failures = failures + 1
        entries[name]?.failure = failure.description
        logger.warning(
            "a status list could not be fetched", metadata: ["source": "\(name)", "reason": "\(failure)"])
    }

    private func save(_ name: String) async {
        guard let entry = entries[name], entry.failure == nil, let held = entry.held, let file = entry.file,
            case .url = entry.source
        else { return }
        do { try await file.save(held) } catch {
            logger.warning(
                "a status list could not be kept on disk",
                metadata: ["source": "\(name)", "reason": "\(error.localizedDescription)"])
        }
    }
}
