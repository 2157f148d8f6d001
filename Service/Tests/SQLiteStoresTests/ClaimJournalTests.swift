import AuthContract
import AuthService
import Foundation
import Testing

@testable import SQLiteStores

struct ClaimJournalTests {
    private let start = JournalBench.start
    private var bench: JournalBench

    init() throws { bench = try JournalBench() }

    @Test(arguments: [true, false])
    func `claims survive the end of the process, in order or not`(_ inOrder: Bool) async throws {
        let claims = bench.claims(100)
        let first = try bench.open()
        for claim in claims { #expect(try await first.claim([claim]) == .claimed) }
        if inOrder { await first.close() } else { await first.abandon() }
        let second = try bench.open(at: start + 1)
        for claim in claims { #expect(try await second.claim([claim], now: start + 1) == .taken(claim)) }
        #expect(second.size.live == 100)
        await second.close()
    }

    @Test func `a claim lives exactly until its expiry, across a start too`() async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims) == .claimed)
        #expect(try await first.claim(claims, at: start + 659) == .taken(claims[0]))
        await first.abandon()
        let second = try bench.open(at: start + 659)
        #expect(try await second.claim(claims, at: start + 659) == .taken(claims[0]))
        await second.abandon()
        let third = try bench.open(at: start + 660)
        #expect(third.size.live == 0)
        #expect(try await third.claim(claims, at: start, now: start + 660) == .expired)
        #expect(try await third.claim(claims, at: start + 660) == .claimed)
        await third.close()
    }

    @Test func `a second opener is refused`() async throws {
        let first = try bench.open()
        let error = #expect(throws: StoreOpenError.self) { try bench.open() }
        #expect(error?.code == .inUse)
        await first.close()
        await (try bench.open()).close()
    }

    @Test func `no live claim is evicted: claims that do not fit are refused`() async throws {
        var bench = bench
        bench.settings.maximumClaims = 10
        let journal = try bench.open()
        let claims = bench.claims(10)
        for claim in claims { #expect(try await journal.claim([claim]) == .claimed) }
        let error = await #expect(throws: StoreError.self) { try await journal.claim(bench.claims(1)) }
        #expect(error?.code == .unavailable)
        for claim in claims { #expect(try await journal.claim([claim]) == .taken(claim)) }
        let later = start + 720
        #expect(try await journal.claim(bench.claims(10), at: later) == .claimed, "room comes with time")
        await journal.close()
    }

    @Test func `a closed journal refuses`() async throws {
        let journal = try bench.open()
        await journal.close()
        let error = await #expect(throws: StoreError.self) { try await journal.claim(bench.claims()) }
        #expect(error?.code == .unavailable)
        await journal.close()
    }

    @Test func `a time that the journal cannot record is refused`() async throws {
        let journal = try bench.open()
        let error = await #expect(throws: StoreError.self) {
            try await journal.claim(bench.claims(), at: UnixTime(.max), now: start)
        }
        #expect(error?.code == .unavailable)
        #expect(try await journal.claim(bench.claims(), at: UnixTime(.min), now: start) == .expired)
        await journal.close()
    }

    @Test func `a claim is in the file before it is answered`() async throws {
        let journal = try bench.open()
        let claims = bench.claims()
        #expect(try await journal.claim(claims) == .claimed)
        let file = try Data(contentsOf: URL(fileURLWithPath: bench.segments()[0]))
        for claim in claims {
            #expect(file.range(of: withUnsafeBytes(of: (claim.high, claim.low)) { Data($0) }) != nil)
        }
        await journal.close()
    }

    @Test func `claims beyond the segments' space are claimed, or refused and free`() async throws {
        var bench = bench
        bench.settings.retryInterval = .milliseconds(1)
        bench.settings.segmentRecords = 50
        let journal = try bench.open()
        var claimed: [ReplayClaim] = []
        for claim in bench.claims(2000) {
            // The next segment may not exist yet.
            while true {
                do throws(StoreError) {
                    #expect(try await journal.claim([claim]) == .claimed)
                    break
                } catch {
                    #expect(error.code == .unavailable)
                    await letMaintenanceWork()
                }
            }
            claimed.append(claim)
        }
        #expect(try bench.segments().count > 10)
        await journal.abandon()
        let second = try bench.open()
        #expect(second.size.live == 2000)
        for claim in claimed { #expect(try await second.claim([claim]) == .taken(claim)) }
        await second.close()
    }

    @Test func `a new segment wakes the maintenance thread, so that the one after it exists in time`() async throws {
        var bench = bench
        bench.settings.segmentRecords = 50
        bench.settings.syncInterval = .milliseconds(1)
        // Maintenance does not poll: only a signal wakes it.
        bench.settings.retryInterval = .seconds(3600)
        let journal = try bench.open()
        for count in 2...4 {
            // When half of the segment is used, maintenance creates the next one. Then it sleeps.
            for claim in bench.claims(60) { #expect(try await journal.claim([claim]) == .claimed) }
            await eventually { (try? bench.segments().count) == count }
            for _ in 0..<20 { await letMaintenanceWork() }
        }
        await journal.close()
    }

    @Test func `a full disk refuses claims, keeps those taken, and recovers by itself`() async throws {
        guard let disk = TinyDisk(kilobytes: 64) else { return }
        var bench = bench
        bench.settings.retryInterval = .milliseconds(1)
        bench.settings.segmentRecords = 200
        func open() throws -> ClaimJournal {
            try ClaimJournal(
                folder: "\(disk.path)/claims", settings: bench.settings, expecting: .nothing,
                boot: BootIdentity("boot"), now: start, logger: silent)
        }
        let first = try open()
        try disk.fill()
        var (claimed, refused) = ([[ReplayClaim]](), [[ReplayClaim]]())
        while refused.isEmpty {
            let claims = bench.claims(20)
            do throws(StoreError) {
                #expect(try await first.claim(claims) == .claimed)
                claimed.append(claims)
            } catch {
                #expect(error.code == .unavailable)
                refused.append(claims)
            }
        }
        #expect(claimed.count >= 19, "the room that was taken beforehand is there")
        try disk.makeRoom()
        while true {
            do throws(StoreError) {
                #expect(try await first.claim(refused[0]) == .claimed, "what was refused is not taken")
                break
            } catch {
                // Maintenance has not retried yet.
                await letMaintenanceWork()
            }
        }
        await first.abandon()
        let second = try open()
        for claims in claimed + refused {
            for claim in claims { #expect(try await second.claim([claim]) == .taken(claim)) }
        }
        await second.close()
    }
}
