import NIOConcurrencyHelpers
import Testing

@testable import AuthServer

@Suite struct ReadinessTests {
    @Test func `a hanging check fails at its deadline, and is not started again before it ends`() async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let asked = NIOLockedValueBox(0)
        let readiness = Readiness(
            [
                Readiness.Check("hangs") {
                    asked.withLockedValue { $0 += 1 }
                    // Cancellation would end the stream: the task inside is not cancelled with its waiter.
                    await Task { for await _ in released { return } }.value
                },
                Readiness.Check("works") {},
            ], deadline: .milliseconds(50), memory: .zero)
        for _ in 0..<3 {
            let findings = await readiness.findings()
            #expect(findings.map(\.name) == ["accepting", "hangs", "works"])
            #expect(findings.map { $0.failure == nil } == [true, false, true])
        }
        #expect(asked.withLockedValue { $0 } == 1)
        release.yield()
        var isReady = false
        for _ in 0..<10_000 where !isReady {
            isReady = await readiness.findings().allSatisfy { $0.failure == nil }
            release.yield()
        }
        #expect(isReady)
    }
}
