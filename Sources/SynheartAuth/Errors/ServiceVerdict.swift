internal import AuthContract

/// Reads an answer's refusal, server time and demands.
enum ServiceVerdict {
    /// The error of an answer that is not 2xx. Only a 4xx in the contract's form is the service's decision about the
    /// request. Any other answer, such as a proxy's page, is a network error.
    ///
    /// - Parameter origin: The origin of the answer.
    static func error(of answer: TransportResponse, from origin: RequestOrigin? = nil) -> SynheartAuthError {
        let retryAfter = retryAfter(answer.headers)
        guard let refusal = refusal(answer) else {
            return SynheartAuthError(
                .networkError, "the answer is not the service's (HTTP \(answer.status))", retryAfter: retryAfter)
        }
        let demand = assertionDemand(answer.headers)
        if answer.status >= 500 {
            return SynheartAuthError(
                .networkError, "the service answered \(SynheartAuthError.Code.server(refusal.code).text)",
                retryAfter: retryAfter, serverTime: refusal.serverTime)
        }
        let code = ErrorCode(rawValue: refusal.code)
        let message =
            code == .misdirectedRequest
            ? "configuration error: the service does not accept requests that are signed for \(origin?.description ?? "this origin"); add it to server.other_origins "
                + "or to the app's authorities"
            : String(refusal.message.prefix(500))
        return SynheartAuthError(
            code.map(RetryTable.reported) ?? .server(refusal.code), message, retryAfter: retryAfter,
            serverTime: refusal.serverTime,
            assertionDemand: demand)
    }

    /// A refusal in the contract's form: in the body, or in headers where a gateway replaced the body.
    struct Refusal {
        let code: String
        let message: String
        let serverTime: UnixTime?
    }

    /// The refusal in a 4xx or 5xx; nil if the answer is not in the contract's form.
    static func refusal(_ answer: TransportResponse) -> Refusal? {
        guard (400..<600).contains(answer.status) else { return nil }
        if let body = try? ErrorBody(parsing: answer.body) {
            return Refusal(code: body.code, message: body.message, serverTime: body.serverTimestamp)
        }
        guard let code = try? answer.headers.atMostOne(HeaderName.error), !code.isEmpty else { return nil }
        return Refusal(
            code: code, message: ErrorCode(rawValue: code)?.message ?? "The service refused.",
            serverTime: serverTime(answer))
    }

    /// Whether the answer proves that the request had no effect: a 4xx refusal in the contract's form, except 429, with a code that
    /// is given only before a request takes effect.
    static func excludesEffect(_ answer: TransportResponse) -> Bool {
        guard (400..<500).contains(answer.status), answer.status != 429,
            let code = refusal(answer).flatMap({ ErrorCode(rawValue: $0.code) })
        else { return false }
        return !code.mayHaveTakenEffect
    }

    /// The value of `X-Synheart-Server-Time`; without it the `server_timestamp` of a refusal; nil if there is neither,
    /// or if the header is malformed.
    static func serverTime(_ answer: TransportResponse) -> UnixTime? {
        if let text = try? answer.headers.atMostOne(HeaderName.serverTime) { return try? UnixTime(header: text) }
        guard answer.status >= 400 else { return nil }
        return (try? ErrorBody(parsing: answer.body))?.serverTimestamp
    }

    /// `Retry-After` in whole seconds, limited to ``RetryTable/longestRetryAfter``. A date is ignored.
    static func retryAfter(_ headers: HeaderFields) -> Duration? {
        guard let text = try? headers.atMostOne("Retry-After"), !text.isEmpty,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        // A number that does not fit 64 bits is treated as the longest time.
        return Int64(text).map { min(.seconds($0), RetryTable.longestRetryAfter) } ?? RetryTable.longestRetryAfter
    }

    /// The demand in `X-Synheart-Rotate`; nil if there is no valid one.
    static func rotationDemand(_ headers: HeaderFields) -> RotationDemand? {
        guard let text = try? headers.atMostOne(HeaderName.rotate) else { return nil }
        return try? RotationDemand(headerValue: text)
    }

    /// The demand in `X-Synheart-Assertion`; nil if there is no valid one.
    static func assertionDemand(_ headers: HeaderFields) -> AssertionDemand? {
        guard let text = try? headers.atMostOne(HeaderName.assertion) else { return nil }
        return try? AssertionDemand(headerValue: text)
    }
}
