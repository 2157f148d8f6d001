import AuthContract
import AuthService
import Bytes
import Testing

@testable import AuthServer

@Suite struct ReadinessTests {
    @Test func `a hanging check fails at its deadline, and is not started again before it ends`() async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let asked = Locked(0)
        // The trailing closure below replaces the timers of the checks' deadlines. In the first round, the answer of `works`
        // cancels the timer of `works`, and then the timer of `hangs` fires. In later rounds, no timer fires.
        let (isFirstRound, hasAnswered) = (Locked(true), Locked(false))
        let readiness = Readiness(
            [
                Readiness.Check("hangs") {
                    asked.withLock { $0 += 1 }
                    // The inner task is not cancelled with its waiter, because that would end the stream.
                    await Task { for await _ in released {} }.value
                },
                Readiness.Check("works") {},
            ], deadline: .seconds(1), memory: .zero
        ) { _ in
            while !isFirstRound.withLock({ $0 }) || !hasAnswered.withLock({ $0 }) {
                if Task.isCancelled { hasAnswered.withLock { $0 = true } }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
        for _ in 0..<3 {
            let findings = await readiness.findings()
            #expect(findings.map(\.name) == ["accepting", "hangs", "works"])
            #expect(findings.map { $0.failure == nil } == [true, false, true])
            isFirstRound.withLock { $0 = false }
        }
        #expect(asked.withLock { $0 } == 1)
        release.finish()
        while await !readiness.findings().allSatisfy({ $0.failure == nil }) { await Task.yield() }
    }

    private static let until = UnixTime(1_780_272_065)

    /// The outcome of a check that asks parts of a store. A part is 0 (works), 1 (cannot be reached), 2 (lost its
    /// history), or 3 (lost its history, and can be used a second later than part 2).
    private func outcome(of parts: [UInt8]) async -> String {
        do {
            try await Readiness.ask(parts.map { [$0] }, SystemRandom()) { random in
                switch random.bytes(32)[0] {
                case 0: return
                case 1: throw StoreError(.unavailable, "gone")
                case let part: throw Readiness.Degraded.historyLost(until: Self.until + Int64(part))
                }
            }
            return "works"
        } catch let degraded as Readiness.Degraded {
            return "degraded until \(degraded.until.map { "\($0.seconds - Self.until.seconds)" } ?? "?")"
        } catch { return "fails" }
    }

    @Test(
        arguments: [
            ([0], "works"), ([1], "fails"), ([2], "degraded until 2"), ([0, 0, 0], "works"),
            ([0, 1, 0], "degraded until ?"),
            ([1, 1, 0], "degraded until ?"), ([1, 1, 1], "fails"), ([0, 2, 3], "degraded until 3"),
            ([3, 2], "degraded until 3"),
            ([1, 2], "degraded until ?"),
        ] as [([UInt8], String)])
    func `a store of several parts fails only if every part does`(parts: [UInt8], expected: String) async {
        #expect(await outcome(of: parts) == expected)
    }

    @Test func `values of a part begin as it says, and are random without parts`() async throws {
        let seen = Locked<[[UInt8]]>([])
        try await Readiness.ask([[1, 2], [3, 4]], SystemRandom()) { random in
            seen.withLock { $0 += [random.bytes(32), Array(random.bytes(1))] }
        }
        #expect(
            Set(seen.withLock { $0 }.filter { $0.count == 32 }.map { Array($0.prefix(2)) }) == [
                [1, 2], [3, 4],
            ])
        #expect(Set(seen.withLock { $0 }.filter { $0.count == 1 }) == [[1], [3]])
        let unlike = Locked<Set<[UInt8]>>([])
        for _ in 0..<8 {
            try await Readiness.ask([], SystemRandom()) { random in
                unlike.withLock { _ = $0.insert(random.bytes(32)) }
            }
        }
        #expect(unlike.withLock(\.count) == 8)
    }

    @Test(
        arguments: [
            (nil, 0, nil, "works"), ("gone", 1, nil, "fails"), ("gone", 1, 30, "fails"),
            ("gone", 0.34, nil, "34 % until ?"),
            ("gone", 0.001, 30, "1 % until ?"), (nil, 0, 30, "history until 30"),
        ] as [(String?, Double, Int64?, String)])
    func `a shared store fails only if no part of it can be used`(
        trouble: String?, unusable: Double, lost: Int64?, expected: String
    ) {
        var outcome = "works"
        do {
            try Readiness.judge(
                trouble.map { StoreError(.unavailable, $0) }, unusable: unusable, historyLost: lost, at: Self.until)
        } catch let degraded as Readiness.Degraded {
            let part = degraded.reason.split(separator: " ").first { Int($0) != nil }
            outcome =
                (part.map { "\($0) %" } ?? "history")
                + " until \(degraded.until.map { "\($0.seconds - Self.until.seconds)" } ?? "?")"
        } catch { outcome = "fails" }
        #expect(outcome == expected)
    }

    @Test func `a degraded check is ready, with its reason`() async {
        let readiness = Readiness([
            Readiness.Check("lost") { throw Readiness.Degraded("why", until: Self.until) }, Readiness.Check("works") {},
        ])
        let findings = await readiness.findings()
        #expect(findings.allSatisfy { $0.failure == nil })
        #expect(findings.map(\.degraded) == [nil, Readiness.Degraded("why", until: Self.until), nil])
    }

    @Test func `a check may have a note although nothing fails`() async {
        let readiness = Readiness([.noting("lists") { "an hour old" }, Readiness.Check("works") {}])
        let findings = await readiness.findings()
        #expect(findings.map(\.note) == [nil, "an hour old", nil])
    }
}
