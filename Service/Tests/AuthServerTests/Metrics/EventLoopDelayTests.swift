import AuthService
import NIOPosix
import Testing

@testable import AuthServer

@Suite struct EventLoopDelayTests {
    @Test func `each round measures each event loop once`() async throws {
        let metrics = ServerMetrics()
        let delay = EventLoopDelay(metrics: metrics)
        let rounds = Rounds(left: 3)
        await delay.run { _ in try await rounds.next() }
        let series = try ExpositionText(metrics.text()).series
        let loops = MultiThreadedEventLoopGroup.singleton.makeIterator().map { $0 }.count
        #expect(series["synheart_event_loop_delay_seconds_count"] == Double(3 * loops))
    }

    /// Replaces the pauses between rounds. The first `left` pauses end at once, and the next one ends the run.
    private actor Rounds {
        private var left: Int

        init(left: Int) { self.left = left }

        func next() throws {
            guard left > 0 else { throw CancellationError() }
            left -= 1
        }
    }
}
