package import AuthContract
internal import Bytes
internal import SynheartAuth

/// What a fleet sees of a service: each exchange by its route, how long it took and how it ended.
package final class FleetLog: Sendable {
    /// The exchanges of one route.
    package struct Line: Sendable, Hashable {
        /// Answers of any kind, by how long they took.
        package internal(set) var latencies = LatencyHistogram()
        /// Answers other than 2xx, by the service's code, or `HTTP_` and the status if there is none; `NO_ANSWER`.
        package internal(set) var errors: [String: Int] = [:]

        /// Exchanges that were begun and ended, with or without an answer.
        package var count: Int { Int(latencies.count) + (errors[FleetLog.noAnswer] ?? 0) }
    }

    /// What stands for the code of an exchange without an answer.
    package static let noAnswer = "NO_ANSWER"
    private static let maximumCodes = 100

    private let lines = Locked<[Route: Line]>([:])

    /// Nothing yet.
    package init() {}

    /// The lines so far.
    package var routes: [Route: Line] { lines.withLock { $0 } }

    func answered(_ route: Route, after duration: Duration, code: String?) {
        lines.withLock { lines in
            lines[route, default: Line()].latencies.note(duration)
            if let code { Self.count(code, &lines[route, default: Line()]) }
        }
    }

    func unanswered(_ route: Route) {
        lines.withLock { Self.count(Self.noAnswer, &$0[route, default: Line()]) }
    }

    private static func count(_ code: String, _ line: inout Line) {
        let known = line.errors[code] != nil || line.errors.count < maximumCodes
        line.errors[known ? code : "OTHER", default: 0] += 1
    }
}
