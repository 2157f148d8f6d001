internal import AuthContract
internal import StrictJSON
internal import SynheartAuth

/// A transport that records each exchange in the fleet's log.
struct LoggedTransport: HTTPTransport {
    let base: any HTTPTransport
    let log: FleetLog
    /// Headers that are added to every request.
    var headers: [(name: String, value: String)] = []

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await send(request, dueAt: .now)
    }

    /// Sends a request. The latency is measured from the time when the request was due, so it includes the time spent
    /// waiting for a free slot.
    ///
    /// - Parameter kind: the kind of a bad request, or nil for a good request.
    func send(
        _ request: TransportRequest, _ kind: BadTraffic? = nil, dueAt: ContinuousClock.Instant
    ) async throws(TransportError) -> TransportResponse {
        let route = Route.allCases.first { request.url.hasSuffix($0.rawValue) }
        let lines = request.headers.lines.map { ($0.name, $0.value) } + headers.map { ($0.name, $0.value) }
        let request = TransportRequest(
            method: request.method, url: request.url, headers: HeaderFields(lines), body: request.body,
            deadline: request.deadline, maximumAnswer: request.maximumAnswer)
        do throws(TransportError) {
            let answer = try await base.send(request)
            if let route { log.answered(route, kind, after: dueAt.duration(to: .now), code: Self.code(of: answer)) }
            return answer
        } catch {
            if let route, !Task.isCancelled { log.unanswered(route, kind) }
            throw error
        }
    }

    /// The code of a refusal; nil if the answer is not a refusal.
    static func code(of answer: TransportResponse) -> String? {
        guard !(200..<300).contains(answer.status) else { return nil }
        return (try? ErrorBody(parsing: answer.body))?.code ?? "HTTP_\(answer.status)"
    }
}
