internal import AuthContract
internal import HTTPTypes
internal import Tracing

extension RequestTracer {
    /// Serves a request in its own span.
    ///
    /// The parent span, and its decision whether the trace is recorded, are accepted only from a trusted proxy: other clients
    /// could make the service record everything.
    func tracing<Value>(
        _ head: HTTPRequest, _ requestID: String, over connection: ConnectionContext, trusting proxies: TrustedProxies,
        _ serve: (TraceSpan?) async throws -> Value
    ) async throws -> Value {
        var context = InstrumentationContext.topLevel
        if let peer = connection.peer, proxies.contain(peer) {
            extract(head.headerFields, into: &context, using: HeaderExtractor())
        }
        let span = startSpan("request", context: context, ofKind: .server)
        guard span.isRecording else {
            // If the parent span does not record the trace, calls to providers still pass on the parent's trace context.
            guard context.place != nil else { return try await serve(nil) }
            return try await InstrumentationContext.$current.withValue(context) { try await serve(nil) }
        }
        defer { span.end() }
        span.attributes["synheart.request_id"] = requestID
        return try await InstrumentationContext.$current.withValue(span.context) { try await serve(span) }
    }
}

extension Optional<RequestTracer> {
    /// Runs a part of a request in a span of its own, if the request is recorded.
    @inline(__always)
    func step<Value, Failure: Error>(
        _ name: String, _ run: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard let self, let context = InstrumentationContext.recorded else { return try await run() }
        let span = self.startSpan(name, context: context)
        defer { span.end() }
        // `withValue` loses the type of the error.
        let result = await InstrumentationContext.$current.withValue(span.context) { () -> Result<Value, Failure> in
            do throws(Failure) { return .success(try await run()) } catch { return .failure(error) }
        }
        return try result.get()
    }
}

extension TraceSpan {
    /// Adds the data of the request's log line, except the reason of a refusal.
    func add(_ outcome: Outcome, _ answer: APIResponse, method: String) {
        let route = outcome.route
        // The client chooses the text of the method, so do not record an unknown one.
        let method = route?.methods.contains(method) == true ? method : "_OTHER"
        operationName = route.map { "\(method) \($0.rawValue)" } ?? "unknown"
        updateAttributes { attributes in
            attributes["http.request.method"] = method
            attributes["http.route"] = route?.rawValue ?? "unknown"
            attributes["http.response.status_code"] = Int64(answer.status)
            attributes["synheart.outcome"] = answer.outcome
            if let app = outcome.app { attributes["synheart.app"] = app.text }
            if let device = outcome.device { attributes["synheart.device"] = device.logged }
        }
        if answer.status >= 500 { setStatus(SpanStatus(code: .error, message: answer.outcome)) }
    }
}

private struct HeaderExtractor: Extractor {
    /// The value of a header that occurs once.
    func extract(key: String, from carrier: HTTPFields) -> String? {
        guard let name = HTTPField.Name(key) else { return nil }
        let values = carrier[values: name]
        return values.count == 1 ? values[0] : nil
    }
}
