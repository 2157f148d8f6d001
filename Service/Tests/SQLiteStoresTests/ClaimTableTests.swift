import AuthService
import Testing

@testable import SQLiteStores

struct ClaimTableTests {
    /// A generator with the same numbers in every run.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64 = 42

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return ClaimRecord.mix(state)
        }
    }

    @Test func `the table agrees with a dictionary, whatever expires in between`() {
        var (table, model, numbers) = (ClaimTable(), [ReplayClaim: UInt32](), Numbers())
        var now: Int64 = 1000
        for step in 0..<500_000 {
            let number = UInt64.random(in: 0..<150_000, using: &numbers)
            let claim = ReplayClaim(high: ClaimRecord.mix(number), low: ClaimRecord.mix(number + 1))
            let taken = Int64(model[claim] ?? 0) > now
            #expect(table.contains(claim, now: now) == taken)
            if !taken {
                let expiry = UInt32(now) + .random(in: 1...600, using: &numbers)
                model[claim] = expiry
                _ = table.insert(claim, expiry: expiry, now: now)
            }
            if step % 100 == 0 { now += 3 }
            if step % 1000 == 0 {
                _ = table.sweep(shard: .random(in: 0..<ClaimTable.shardCount, using: &numbers), now: now)
            }
        }
        #expect(table.used < 150_001)
    }

    @Test func `dropping expired claims tells their latest expiry and releases memory`() {
        var (table, numbers) = (ClaimTable(), Numbers())
        func sweep(now: Int64, latest: Int64 = .max) -> Int64 {
            (0..<ClaimTable.shardCount).map { table.sweep(shard: $0, now: now, latest: latest) }.max() ?? .min
        }
        var droppedTo = Int64.min
        for expiry: UInt32 in [700, 650, 800] {
            for _ in 0..<40_000 {
                let claim = ReplayClaim(high: numbers.next(), low: numbers.next())
                droppedTo = max(droppedTo, table.insert(claim, expiry: expiry, now: 40))
            }
        }
        #expect((table.used, droppedTo) == (120_000, .min))
        #expect((sweep(now: 649), table.used) == (.min, 120_000))
        #expect((sweep(now: 700), table.used) == (700, 40_000))
        // Claims that expire after `latest` are dropped too. They have not expired, so they are not in the result.
        #expect((sweep(now: 700, latest: 799), table.used) == (.min, 0))
    }

    @Test func `a claim that needs room drops expired ones, and tells their latest expiry`() {
        var (table, numbers, droppedTo) = (ClaimTable(), Numbers(), Int64.min)
        for _ in 0..<200_000 {
            let claim = ReplayClaim(high: numbers.next(), low: numbers.next())
            droppedTo = max(droppedTo, table.insert(claim, expiry: 700, now: 40))
        }
        var added = 0
        while droppedTo == .min, added < 100_000 {
            added += 1
            let claim = ReplayClaim(high: numbers.next(), low: numbers.next())
            droppedTo = table.insert(claim, expiry: 1700, now: 1040)
        }
        #expect(droppedTo == 700)
        // The number of claims that fit before a shard is full depends on the table's secret seeds.
        #expect(table.used < 200_000 + added)
    }

    @Test func `a claim of zeros is a claim`() {
        var table = ClaimTable()
        let zero = ReplayClaim(high: 0, low: 0)
        #expect(!table.contains(zero, now: 0))
        #expect(table.insert(zero, expiry: 10, now: 0) == .min)
        #expect(table.contains(zero, now: 9))
        #expect(!table.contains(zero, now: 10))
    }

    @Test func `the counter of live claims drops expired claims minute by minute`() {
        var counter = LiveClaimCounter()
        counter.add(3, expiry: 59)
        counter.add(4, expiry: 60)
        #expect(counter.live == 7)
        counter.advance(to: 60)
        #expect(counter.live == 4)
        counter.advance(to: 30)
        #expect(counter.live == 7)
        counter.advance(to: 120)
        #expect(counter.live == 0)
    }

    @Test(arguments: [(119, 7), (120, 4), (179, 4), (180, 0)] as [(Int64, Int)])
    func `the counter of live claims counts a claim until the minute of its expiry has passed`(
        _ now: Int64, _ live: Int
    ) {
        var counter = LiveClaimCounter()
        counter.add(3, expiry: 60)
        counter.add(4, expiry: 179)
        counter.advance(to: now)
        #expect(counter.live == live)
        // The minute of the first claim has passed if `now` is 120 or later. The second claim expires in the current minute.
        counter.add(1, expiry: 60)
        counter.add(1, expiry: UInt32(now))
        #expect(counter.live == live + (now < 120 ? 2 : 1))
    }

    @Test
    func `the counter of live claims forgets the minutes that are not kept after wrong readings, and no earlier ones`()
    {
        var counter = LiveClaimCounter()
        for expiry: UInt32 in [60, 120, 180, 240] { counter.add(1, expiry: expiry) }
        counter.advance(to: 120)
        counter.forget(after: 180)
        #expect(counter.live == 2)
        counter.advance(to: 60)
        #expect(counter.live == 3)
    }

    @Test
    func `the counter of live claims keeps the last passed minutes for a clock that falls back, and not all of them`() {
        var counter = LiveClaimCounter()
        for minute: Int64 in 1...200 {
            counter.advance(to: minute * 60)
            counter.add(1, expiry: UInt32(minute * 60))
            #expect(counter.live == 1)
            #expect(counter.minutes <= 65)
        }
        counter.advance(to: (200 - 20) * 60)
        #expect(counter.live == 21)
        // All future minutes are kept.
        for minute: UInt32 in 201...300 { counter.add(1, expiry: minute * 60) }
        counter.advance(to: 200 * 60)
        counter.advance(to: 201 * 60)
        #expect(counter.live == 100)
    }

    @Test func `the first slots of searches are spread over the whole shard`() {
        let places = (0..<2000).map { _ in ClaimTable.place(of: .random(in: .min ... .max), among: 100) }
        #expect(places.allSatisfy { (0..<100).contains($0) })
        #expect(Set(places).count > 90)
    }
}
