import AuthContract
import AuthService
import Bytes
import Foundation
import Logging
import Testing

@testable import SQLiteStores

/// A journal folder, in which journals are opened one after another.
struct JournalBench {
    static let start = UnixTime(1_750_000_000)
    let folder: TemporaryFolder
    var settings = ClaimJournal.Settings()
    private let random = SystemRandom()

    init() throws {
        folder = try TemporaryFolder()
        // Small, because each start after a kill reads a whole segment.
        settings.segmentRecords = 500
        settings.deadline = .seconds(120)
        // The monotonic clock stands still. On a slow machine, a real one would advance between calls, and the fixed readings
        // of the tests would look like a clock that fell behind.
        settings.monotonic = { 100 }
    }

    /// A bench whose monotonic clock the test sets.
    init(monotonic: Locked<Int64>) throws {
        try self.init()
        settings.monotonic = { monotonic.withLock { $0 } }
    }

    var path: String { "\(folder.path)/claims" }

    func open(
        at now: UnixTime = start, boot: String = "first boot", expecting expectation: JournalExpectation = .nothing,
        logger: Logger = silent, noted: @escaping @Sendable (JournalNote) -> Void = { _ in }
    ) throws(StoreOpenError) -> ClaimJournal {
        try ClaimJournal(
            folder: path, settings: settings, expecting: expectation, boot: BootIdentity(boot), now: now,
            logger: logger, noted: noted)
    }

    func claims(_ count: Int = 2) -> [ReplayClaim] {
        (0..<count).map { _ in .nonce(RequestNonce(from: random), of: DeviceID(from: random)) }
    }

    /// The segments, oldest first.
    func segments() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasPrefix("claims-") }.sorted()
            .map { "\(path)/\($0)" }
    }

    func change(_ file: String, _ body: (inout Data) -> Void) throws {
        var data = try Data(contentsOf: URL(fileURLWithPath: file))
        body(&data)
        try data.write(to: URL(fileURLWithPath: file))
    }
}

extension ReplayStore {
    /// Makes claims for an arbitrary device: these stores do not separate devices.
    func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        try await claim(
            claims, of: DeviceID(from: SystemRandom()), timestamp: timestamp, expiresAt: expiresAt, now: now,
            futureWindow: futureWindow)
    }
}

extension ClaimJournal {
    /// Makes claims for a request dated `timestamp`, as the service does.
    func claim(
        _ claims: [ReplayClaim], at timestamp: UnixTime = JournalBench.start, now: UnixTime? = nil
    ) async throws(StoreError) -> ClaimOutcome {
        try await claim(
            claims, timestamp: timestamp, expiresAt: timestamp + 660, now: now ?? timestamp, futureWindow: 60)
    }
}

/// Lets the maintenance thread get the journal's lock. After a mere yield, the task would retake the lock at once, and the thread
/// could wait for minutes.
func letMaintenanceWork() async { try? await Task.sleep(for: .milliseconds(1)) }

/// Waits until another thread has fulfilled `condition`. Gives up after 20,000 pauses of a millisecond.
func eventually(_ condition: () -> Bool) async {
    for _ in 0..<20_000 {
        if condition() { return }
        await letMaintenanceWork()
    }
    Issue.record("the maintenance thread never did it")
}
