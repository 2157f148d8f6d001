import AuthContract
import AuthServer
import AuthService
import StrictJSON

extension Administration {
    /// Passes on events as they are appended, until the command is stopped. Each call after the first waits for events.
    ///
    /// Before the first answer, every failure ends the command. Later, if the service cannot be reached or cannot answer now, the
    /// call is repeated with back-off, and no event is lost or repeated.
    ///
    /// - Parameters:
    ///   - after: the number of the event after which to begin; nil: the log's last event.
    ///   - query: further conditions.
    ///   - show: called with each event.
    func followAudit(
        after: Int64?, query: [(String, String?)], show: (JSONObject) throws(CommandFailure) -> Void
    ) async throws {
        var (after, failures, hasAnswered) = (after, 0, false)
        while true {
            // Check for a closed output here, because there may be no event for a long time.
            try StandardOutput.check()
            let call = AdminCall(
                .followAudit,
                query: query + [("after", after.map { String($0) }), ("wait_seconds", hasAnswered ? "25" : "0")])
            var failure: CommandFailure?
            var answer: AdminResponse?
            do { answer = try await self.answer(call) } catch let error as CommandFailure { failure = error }
            if let answer, answer.status >= 500 || answer.status == 429 {
                failure = CommandFailure(.impossible, "the service answers with status \(answer.status)")
            }
            if let failure, hasAnswered {
                if failures == 0 { StandardError.print("synheart-auth: \(failure); asking again") }
                try await Task.sleep(for: .seconds(Self.pause.seconds(after: failures, SystemRandom())))
                failures += 1
                continue
            }
            guard let answer else { throw failure ?? CommandFailure(.impossible, "no answer") }
            let page = try Self.success(answer, of: .followAudit)
            let events = (page["events"]?.array ?? []).compactMap(\.object)
            for event in events { try show(event) }
            guard let next = page["next_after"]?.integer else {
                throw CommandFailure(.impossible, "the answer has no next_after")
            }
            // With too many followers, the service answers at once, so wait here.
            if hasAnswered, events.isEmpty { try await Task.sleep(for: .milliseconds(250)) }
            (after, failures, hasAnswered) = (next, 0, true)
        }
    }

    private static var pause: BackOffPause { BackOffPause(first: 1, longest: 30) }
}
