package import AndroidKeyAttestation
package import AuthContract
package import AuthService
internal import Foundation
package import Logging

/// Settings of the revocation lists.
package struct RevocationSettings: Sendable {
    /// A folder for copies, which are loaded at start; nil: no copies.
    package var directory: String?
    /// The maximum number of seconds since the source last confirmed a list: three days by default. An older list is not
    /// used. Nil: no limit.
    package var maximumAgeSeconds: Int64? = RevocationListState.maximumAge
    /// The deadline of one fetch.
    package var deadline: Duration = .seconds(20)

    /// The defaults.
    package init() {}
}

/// Google's lists of revoked attestation keys
/// ([status](https://developer.android.com/privacy-and-security/security-key-attestation#certificate_status)), by source.
/// They are fetched in the background and replaced atomically. Lists from URLs are copied to disk.
///
/// A list that cannot be read, or that lost all its entries, never replaces a good one.
package actor RevocationLists {
    private struct Entry {
        let source: ListSource
        let file: KeptListFile?
        var isLoaded = false
        var current: KeptList?
        var dueAt = UnixTime(.min)
        var failures = 0
        var failure: String?
        var fetching: Task<Void, Never>?
    }

    /// The largest number of sources. It is bounded, because every app record can name another source.
    private static let maximumSources = 256

    private let http: ProviderHTTP
    private let settings: RevocationSettings
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let pause: @Sendable (Duration) async throws -> Void
    private let logger: Logger
    private var entries: [String: Entry] = [:]

    /// Revocation lists that are fetched with one HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - settings: folder, maximum age and deadline.
    ///   - clock: the current time, for the age of lists and the next fetch.
    ///   - random: jitters the pauses between attempts.
    ///   - pause: waits. Throws if the task is cancelled.
    ///   - logger: receives failures.
    package init(
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

    /// The list of a source; nil if there is no list that is recent enough. If there is no such list at first, the caller waits
    /// for at most one fetch.
    package func list(from source: String) async -> RevocationStatusList? {
        guard await isKnown(source) else { return nil }
        if let list = usable(source) { return list }
        await refreshIfDue(source)
        return usable(source)
    }

    /// Loads the copies of these sources from disk. From now on, ``run(named:)`` keeps their lists current. Called at start with
    /// all sources that apps name.
    package func keep(_ sources: some Sequence<String> & Sendable) async {
        for source in sources { _ = await isKnown(source) }
    }

    /// Keeps the lists current until the task is cancelled.
    ///
    /// - Parameter named: returns the sources that apps name now, so that other sources are forgotten; nil if the sources are
    ///   unknown.
    package func run(named: @Sendable () async -> Set<String>? = { nil }) async {
        while !Task.isCancelled {
            if let named = await named() {
                entries = entries.filter { named.contains($0.key) || $0.value.fetching != nil }
            }
            await refreshAll()
            // Sleep only briefly, so that a source that is added in the meantime is fetched soon.
            let next = entries.values.map { $0.dueAt - clock.now }.min() ?? 30
            do { try await pause(.seconds(min(max(next, 1), 30))) } catch { return }
        }
    }

    /// The state of each list, by source.
    package func states() -> [RevocationListState] {
        let now = clock.now
        return entries.sorted { $0.key < $1.key }.map { source, entry in
            RevocationListState(
                source: source, entries: entry.current?.list.count,
                ageSeconds: entry.current.map { now - $0.confirmedAt },
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
        guard let current = entries[source]?.current else { return nil }
        let age = clock.now - current.confirmedAt
        // A list from the future was confirmed while the clock was ahead, so its age is not known.
        if let maximum = settings.maximumAgeSeconds, !(-Self.clockTolerance...maximum).contains(age) { return nil }
        return current.list
    }

    private func isKnown(_ name: String) async -> Bool {
        if entries[name] == nil {
            guard entries.count < Self.maximumSources, let source = ListSource(name) else {
                logger.error("not a source of a status list, or too many sources", metadata: ["source": "\(name)"])
                return false
            }
            let file = settings.directory.map { KeptListFile(of: name, in: $0) }
            entries[name] = Entry(source: source, file: file, isLoaded: file == nil)
        }
        guard let entry = entries[name], !entry.isLoaded else { return true }
        let kept = await entry.file?.load(at: clock.now)
        entries[name]?.isLoaded = true
        // A newer list may have been fetched while the file was read.
        if entries[name]?.current == nil { entries[name]?.current = kept }
        return true
    }

    private func refreshIfDue(_ name: String) async {
        guard let entry = entries[name], isDue(entry) || entry.fetching != nil else { return }
        // Fetch in a separate task, so that a cancelled caller does not cancel the other callers. The task ends within its
        // deadline.
        let fetch = entry.fetching ?? Task { await self.refresh(name) }
        entries[name]?.fetching = fetch
        await fetch.value
    }

    /// Whether the list must be fetched: the next fetch is due, or a recorded time shows that the clock was ahead.
    private func isDue(_ entry: Entry) -> Bool {
        let now = clock.now
        return entry.dueAt <= now || entry.dueAt > now + Self.longestPause
            || entry.current.map { $0.confirmedAt > now + Self.clockTolerance } ?? false
    }

    /// The largest difference between two clocks that is tolerated, in seconds.
    private static let clockTolerance: Int64 = 300
    /// The longest time between two fetches, in seconds.
    private static let longestPause: Int64 = 86_400

    private func refresh(_ name: String) async {
        defer { entries[name]?.fetching = nil }
        guard let entry = entries[name] else { return }
        do throws(ListSource.Failure) {
            let answer = try await entry.source.fetch(
                over: http, current: entry.current, at: clock.now, within: settings.deadline)
            try accept(answer, for: name)
        } catch { failed(error, name) }
        await save(name)
    }

    private func accept(_ answer: ListSource.Fetched, for name: String) throws(ListSource.Failure) {
        let fresh: Int64
        switch answer {
        case .unchanged(let confirmed, let seconds):
            entries[name]?.current?.confirmedAt = confirmed
            fresh = seconds
        case .list(let new, let seconds):
            let before = entries[name]?.current?.list.count ?? 0
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
            entries[name]?.current = new
            fresh = seconds
        }
        entries[name]?.failures = 0
        entries[name]?.failure = nil
        // Fetch up to 10 % earlier, at random, so that nodes do not fetch at the same moment.
        let jittered = Int64(Double(fresh) * (1 - random.fraction() / 10))
        entries[name]?.dueAt = clock.now + max(jittered, 1)
    }

    private static let pauses = BackOffPause(first: 30, longest: 900)

    private func failed(_ failure: ListSource.Failure, _ name: String) {
        let failures = entries[name]?.failures ?? 0
        let own = Self.pauses.seconds(after: failures, random)
        entries[name]?.dueAt = clock.now + max(Int64(own), min(failure.retryAfter ?? 0, 3600))
        entries[name]?.failures = failures + 1
        entries[name]?.failure = failure.description
        logger.warning(
            "a status list could not be fetched", metadata: ["source": "\(name)", "reason": "\(failure)"])
    }

    private func save(_ name: String) async {
        guard let entry = entries[name], entry.failure == nil, let current = entry.current, let file = entry.file,
            case .url = entry.source
        else { return }
        do { try await file.save(current) } catch {
            logger.warning(
                "a status list could not be kept on disk",
                metadata: ["source": "\(name)", "reason": "\(error.localizedDescription)"])
        }
    }
}
