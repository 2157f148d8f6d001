package import AuthContract
internal import Bytes
internal import SynheartAuth

/// The exchanges of a fleet with the service: for each route and each kind of bad requests, their latencies and errors.
package final class FleetLog: Sendable {
    /// The exchanges of one route.
    package struct Line: Sendable, Hashable {
        /// The latencies of all answers, whatever their status.
        package internal(set) var latencies = LatencyHistogram()
        /// The number of answers other than 2xx by the service's error code, or by `HTTP_` and the status if the body has no
        /// code. Exchanges without an answer have the key `noAnswer`. After 100 keys, new ones are counted under `OTHER`.
        package internal(set) var errors: [String: Int] = [:]

        /// The number of exchanges that ended, with or without an answer.
        package var count: Int { Int(latencies.count) + (errors[FleetLog.noAnswer] ?? 0) }
    }

    /// The key in `Line.errors` for exchanges without an answer.
    package static let noAnswer = "NO_ANSWER"
    private static let maximumCodes = 100

    private struct Lines {
        var routes: [Route: Line] = [:]
        var bad: [BadTraffic: Line] = [:]
    }

    private let lines = Locked(Lines())

    /// An empty log.
    package init() {}

    /// The exchanges so far, by route, without the bad requests.
    package var routes: [Route: Line] { lines.withLock { $0.routes } }

    /// The exchanges with bad requests so far. A correct refusal is counted in `errors` too, under its code.
    package var bad: [BadTraffic: Line] { lines.withLock { $0.bad } }

    /// Records an answer to a request of this route, or to a bad request of this kind.
    func answered(_ route: Route, _ kind: BadTraffic? = nil, after duration: Duration, code: String?) {
        change(route, kind) { line in
            line.latencies.note(duration)
            if let code { Self.count(code, &line) }
        }
    }

    func unanswered(_ route: Route, _ kind: BadTraffic? = nil) {
        change(route, kind) { Self.count(Self.noAnswer, &$0) }
    }

    private func change(_ route: Route, _ kind: BadTraffic?, _ change: (inout Line) -> Void) {
        lines.withLock { lines in
            if let kind {
                change(&lines.bad[kind, default: Line()])
            } else {
                change(&lines.routes[route, default: Line()])
            }
        }
    }

    private static func count(_ code: String, _ line: inout Line) {
        let known = line.errors[code] != nil || line.errors.count < maximumCodes
        line.errors[known ? code : "OTHER", default: 0] += 1
    }
}
