internal import Foundation
internal import Logging

/// The thread that writes: whatever has come in since its last write goes out in one.
final class JournalWriter: Sendable {
    private let state: JournalState
    private let logger: Logger
    private let ended = DispatchGroup()

    init(_ state: JournalState, logger: Logger) {
        self.state = state
        self.logger = logger
    }

    func start() {
        ended.enter()
        let thread = Thread { [self] in
            run()
            ended.leave()
        }
        thread.name = "claims.write"
        thread.start()
    }

    func join() { ended.wait() }

    private func run() {
        while let batch = state.nextBatch() {
            guard write(batch) else { return }
        }
    }

    /// Writes the batch, however long it takes until there is room; false when closing comes first.
    private func write(_ batch: JournalState.Batch) -> Bool {
        var failed = false
        while true {
            do throws(SystemError) {
                try batch.segment.append(batch.records)
                if failed { logger.notice("the claim journal is written again") }
                state.didWrite(batch.segment)
                return true
            } catch {
                if !failed { logger.error("the claim journal cannot be written", metadata: ["error": "\(error)"]) }
                failed = true
                state.didFail(error)
                guard state.pauseBeforeRetry() else { return false }
            }
        }
    }
}
