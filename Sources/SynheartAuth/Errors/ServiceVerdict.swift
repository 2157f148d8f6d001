internal import AuthContract

/// Reads an answer's refusal, server time and demands.
enum ServiceVerdict {
    /// The error of an answer that is not 2xx. Only a 4xx whose body has the contract's form is a verdict. Anything else, such as
    /// a proxy's page, is a network error.
    static func error(of answer: TransportAnswer) -> SynheartAuthError {
        let retryAfter = retryAfter(answer.headers)
        guard (400..<600).contains(answer.status), let body = try? ErrorBody(parsing: answer.body) else {
            return SynheartAuthError(
                .networkError, "the answer is not the service's (HTTP \(answer.status))", retryAfter: retryAfter)
        }
        if answer.status >= 500 {
            return SynheartAuthError(
                .networkError, "the service answered \(SynheartAuthError.Code.server(body.code).text)",
                retryAfter: retryAfter, serverTime: body.serverTimestamp)
        }
        return SynheartAuthError(
            ErrorCode(rawValue: body.code).map(RetryTable.reported) ?? .server(body.code),
            String(body.message.prefix(500)), retryAfter: retryAfter, serverTime: body.serverTimestamp)
    }

    /// The value of `X-Synheart-Server-Time`; without it the `server_timestamp` of a refusal.
    static func serverTime(_ answer: TransportAnswer) -> UnixTime? {
        if let text = try? answer.headers.atMostOne(HeaderName.serverTime) { return try? UnixTime(header: text) }
        guard answer.status >= 400 else { return nil }
        return (try? ErrorBody(parsing: answer.body))?.serverTimestamp
    }

    /// `Retry-After` in whole seconds, limited to ``RetryTable/longestRetryAfter``. A date is ignored.
    static func retryAfter(_ headers: HeaderFields) -> Duration? {
        guard let text = try? headers.atMostOne("Retry-After"), let seconds = Int64(text), seconds >= 0 else {
            return nil
        }
        return min(.seconds(seconds), RetryTable.longestRetryAfter)
    }

    /// The deadline in `X-Synheart-Rotate: required; by=<unix>`.
    static func mustRotateBy(_ headers: HeaderFields) -> UnixTime? {
        guard let text = try? headers.atMostOne(HeaderName.rotate) else { return nil }
        let parts = text.split(separator: ";").map { $0.drop { $0 == " " } }
        guard parts.first == "required", let by = parts.first(where: { $0.hasPrefix("by=") }) else { return nil }
        return try? UnixTime(header: String(by.dropFirst(3)))
    }
}
