internal import AuthContract

/// Reads what a service's answer says beside its body: refusals, its clock, its wish for a new key.
enum ServiceVerdict {
    /// The error of an answer that is not 2xx. Only a body in the contract's form is a verdict; what a proxy or a captive
    /// portal says is a network error.
    static func error(of answer: TransportAnswer) -> SynheartAuthError {
        let retryAfter = retryAfter(answer.headers)
        guard (400..<600).contains(answer.status), let body = try? ErrorBody(parsing: answer.body) else {
            return SynheartAuthError(
                .networkError, "the answer is not the service's (HTTP \(answer.status))", retryAfter: retryAfter)
        }
        if answer.status >= 500 {
            return SynheartAuthError(
                .networkError, "the service answered \(SynheartAuthError.Code.service(body.code).text)",
                retryAfter: retryAfter, serverTime: body.serverTimestamp)
        }
        return SynheartAuthError(
            ErrorCode(rawValue: body.code).map(RetryTable.reported) ?? .service(body.code),
            String(body.message.prefix(500)), retryAfter: retryAfter, serverTime: body.serverTimestamp)
    }

    /// `X-Synheart-Server-Time`, else the refusal's own time.
    static func serverTime(_ answer: TransportAnswer) -> UnixTime? {
        if let text = try? answer.headers.atMostOne(HeaderName.serverTime) { return try? UnixTime(header: text) }
        guard answer.status >= 400 else { return nil }
        return (try? ErrorBody(parsing: answer.body))?.serverTimestamp
    }

    /// `Retry-After` in seconds, at most five minutes; a date is not what the contract has.
    static func retryAfter(_ headers: HeaderFields) -> Duration? {
        guard let text = try? headers.atMostOne("Retry-After"), let seconds = Int64(text), seconds >= 0 else {
            return nil
        }
        return min(.seconds(seconds), RetryTable.longestRetryAfter)
    }

    /// The time in `X-Synheart-Rotate: required; by=<unix>`.
    static func mustRotateBy(_ headers: HeaderFields) -> UnixTime? {
        guard let text = try? headers.atMostOne(HeaderName.rotate) else { return nil }
        let parts = text.split(separator: ";").map { $0.drop { $0 == " " } }
        guard parts.first == "required", let by = parts.first(where: { $0.hasPrefix("by=") }) else { return nil }
        return try? UnixTime(header: String(by.dropFirst(3)))
    }
}
