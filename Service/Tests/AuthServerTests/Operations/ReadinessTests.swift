import NIOConcurrencyHelpers
import Testing

@testable import AuthServer

@Suite struct ReadinessTests {
    @Test func `a hanging check fails at its deadline, and is not started again before it ends`() async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let asked = NIOLockedValueBox(0)
        // The deadline passes in the first round, once the other check has answered and its timer is cancelled.
        let (isFirstRound, hasAnswered) = (NIOLockedValueBox(true), NIOLockedValueBox(false))
        let readiness = Readiness(
            [
                Readiness.Check("hangs") {
                    asked.withLockedValue { $0 += 1 }
                    // Cancellation would end the stream: the task inside is not cancelled with its waiter.
                    await Task { for await _ in released {} }.value
                },
                Readiness.Check("works") {},
            ], deadline: .seconds(1), memory: .zero
        ) { _ in
            while !isFirstRound.withLockedValue({ $0 }) || !hasAnswered.withLockedValue({ $0 }) {
                if Task.isCancelled { hasAnswered.withLockedValue { $0 = true } }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
        for _ in 0..<3 {
            let findings = await readiness.findings()
            #expect(findings.map(\.name) == ["accepting", "hangs", "works"])
            #expect(findings.map { $0.failure == nil } == [true, false, true])
            isFirstRound.withLockedValue { $0 = false }
        }
        #expect(asked.withLockedValue { $0 } == 1)
        release.finish()
        while await !readiness.findings().allSatisfy({ $0.failure == nil }) { await Task.yield() }
    }
}
