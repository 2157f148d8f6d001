package import AuthContract
internal import Bytes
internal import SynheartAuth

/// The exchanges of a fleet with the service: for each route, their latencies and errors.
package final class FleetLog: Sendable {
    /// The exchanges of one route.
    package struct Line: Sendable, Hashable {
        /// The latencies of all answers, whatever their status.
        package internal(set) var latencies = LatencyHistogram()
        /// The number of answers other than 2xx by the service's error code, or by `HTTP_` and the status if the body has no
        /// code. Exchanges without an answer have the key `noAnswer`.
        package internal(set) var errors: [String: Int] = [:]

        /// The number of exchanges that ended, with or without an answer.
        package var count: Int { Int(latencies.count) + (errors[FleetLog.noAnswer] ?? 0) }
    }

    /// The key in `Line.errors` for exchanges without an answer.
    package static let noAnswer = "NO_ANSWER"
    private static let maximumCodes = 100

    private let lines = Locked<[Route: Line]>([:])

    /// An empty log.
    package init() {}

    /// The exchanges so far, by route.
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
