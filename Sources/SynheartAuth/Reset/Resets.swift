internal import AuthContract
internal import Bytes

/// The unfinished resets of one `SynheartAuth` instance. A reset continues even if its caller is cancelled, or if the
/// configuration with which it began is replaced.
final class Resets: Sendable {
    typealias Reset = Task<Result<Void, SynheartAuthError>, Never>

    private struct Line: Sendable {
        var last: Reset
        var count: Int
    }

    private let lines = Locked<[AppID: Line]>([:])

    /// Begins a reset, which runs after all earlier ones of the same app.
    func begin(
        _ appID: AppID, _ reset: @escaping @Sendable () async -> Result<Void, SynheartAuthError>
    ) -> Reset {
        lines.withLock { lines in
            let line = lines[appID]
            let task = Reset {
                _ = await line?.last.value
                let result = await reset()
                self.endOne(appID)
                return result
            }
            lines[appID] = Line(last: task, count: (line?.count ?? 0) + 1)
            return task
        }
    }

    /// Waits for the resets of an app that began before this call. Cancelling the caller ends its wait.
    func wait(for appID: AppID) async throws(SynheartAuthError) {
        guard let last = lines.withLock({ $0[appID]?.last }) else { return }
        guard await last.valueUnlessCancelled() != nil else { throw .cancelled }
    }

    private func endOne(_ appID: AppID) {
        lines.withLock { lines in
            guard let line = lines[appID] else { return }
            lines[appID] = line.count > 1 ? Line(last: line.last, count: line.count - 1) : nil
        }
    }
}
