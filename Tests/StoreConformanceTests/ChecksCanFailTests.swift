import AuthContract
import AuthService
import StoreConformance
import Testing

/// A check that nothing can fail says nothing: here are stores with one fault each.
struct ChecksCanFailTests {
    private static let now = UnixTime(1_750_000_000)

    /// Claims everything for everybody.
    private struct ForgetfulReplay: ReplayStore {
        func claim(
            _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
        ) async throws(StoreError) -> ClaimOutcome { .claimed }
    }

    /// Gives a challenge to everybody who asks at once.
    private actor RacyChallenges: ChallengeStore {
        private var held: [[UInt8]: IssuedChallenge] = [:]

        func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
            held[challenge.bytes] = challenge
        }

        func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
            let found = held[bytes]
            await Task.yield()
            held[bytes] = nil
            return found
        }
    }

    /// Says that it recorded, whatever has changed since.
    private struct CarelessReceipts: ReceiptStore {
        let stores: MemoryStores

        func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt? {
            try await stores.takeDueReceipt(at: now, lease: lease)
        }

        func record(
            _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
        ) async throws(StoreError) -> Bool {
            _ = try await stores.record(change, of: due, recording: event)
            return true
        }
    }

    private func failures(
        replay: (any ReplayStore)? = nil, challenges: (any ChallengeStore)? = nil,
        receipts: (MemoryStores) -> any ReceiptStore = { $0 }
    ) async throws -> Set<String> {
        var names: Set<String> = []
        for check in StoreConformance.checks {
            let memory = MemoryStores()
            let stores = StoresUnderTest(
                challenges: challenges ?? memory, replay: replay ?? memory, apps: memory, devices: memory,
                audit: memory, receipts: receipts(memory), evidence: memory, now: SystemClock().now)
            do { try await check.run(on: stores) } catch let failure as ConformanceFailure {
                names.insert(failure.guarantee)
            }
        }
        return names
    }

    @Test func `A replay store that remembers nothing is found out`() async throws {
        let names = try await failures(replay: ForgetfulReplay())
        #expect(names.contains("What was claimed is taken, and says which"))
        #expect(names.contains("Of 64 tasks that claim one pair one gets it"))
        #expect(names.contains("A clock that steps back does not free what was purged"))
    }

    @Test func `A challenge store that races is found out`() async throws {
        let names = try await failures(challenges: RacyChallenges())
        #expect(names.contains("Of 64 takers of one challenge exactly one gets it"))
    }

    @Test func `A receipt store that records for whoever comes is found out`() async throws {
        let names = try await failures(receipts: CarelessReceipts.init)
        #expect(names.contains("What was taken is recorded once, and not after the lease went to another"))
        #expect(names.contains("A receipt of evidence that was replaced meanwhile is not recorded"))
    }
}
