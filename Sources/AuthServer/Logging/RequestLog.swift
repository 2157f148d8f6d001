internal import AuthContract
internal import Logging

/// One line a request: outcome and time. Never a body, a signature, a proof or a device id.
struct RequestLog: Sendable {
    let logger: Logger

    /// - Parameters:
    ///   - route: a path of the API, never one with an id in it.
    ///   - claimed: whose request it says it is; the device goes into the line as its hash.
    func write(
        requestID: String, method: String, route: String?, answer: Answer, reason: String?, took: Duration,
        claimed: ClaimedIdentity = ClaimedIdentity()
    ) {
        let microseconds = took.components.seconds * 1_000_000 + took.components.attoseconds / 1_000_000_000_000
        logger.log(
            level: answer.status >= 500 ? .error : .info, "request",
            metadata: [
                "request_id": .string(requestID), "method": .string(method), "route": .string(route ?? "unknown"),
                "status": .stringConvertible(answer.status), "outcome": .string(answer.outcome),
                "reason": .string(reason ?? ""), "app": .string(claimed.app?.text ?? ""),
                "device": .string(claimed.device?.logged ?? ""), "microseconds": .stringConvertible(microseconds),
            ])
    }
}
