internal import AuthContract
internal import Logging

/// One line a request: outcome and time. Never a body, a signature or a whole device id.
struct RequestLog: Sendable {
    let logger: Logger

    func write(
        requestID: String, method: String, route: String?, answer: Answer, reason: String?, took: Duration
    ) {
        let microseconds = took.components.seconds * 1_000_000 + took.components.attoseconds / 1_000_000_000_000
        logger.log(
            level: answer.status >= 500 ? .error : .info, "request",
            metadata: [
                "request_id": "\(requestID)", "method": "\(method)", "route": "\(route ?? "unknown")",
                "status": "\(answer.status)", "outcome": "\(answer.outcome)", "reason": "\(reason ?? "")",
                "microseconds": "\(microseconds)",
            ])
    }
}
