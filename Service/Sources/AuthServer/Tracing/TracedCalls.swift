package import AuthService
internal import Tracing

/// Counts calls of stores and providers, and creates a span for each one that belongs to a recorded request.
package struct TracedCalls: StoreObserver, ProviderObserver {
    private let metrics: ServerMetrics
    private let tracer: RequestTracer

    /// - Parameters:
    ///   - metrics: counts every call.
    ///   - tracer: makes the spans.
    package init(_ metrics: ServerMetrics, _ tracer: RequestTracer) {
        (self.metrics, self.tracer) = (metrics, tracer)
    }

    package func called(_ operation: StoreOperation, took: Duration, failure: StoreError.Code?) {
        metrics.called(operation, took: took, failure: failure)
    }

    package func observing<Value: Sendable>(
        _ operation: StoreOperation, _ call: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        guard let context = InstrumentationContext.recorded else { return try await metrics.observing(operation, call) }
        let span = tracer.startSpan("store \(operation.rawValue)", context: context, ofKind: .client)
        defer { span.end() }
        do throws(StoreError) { return try await metrics.observing(operation, call) } catch {
            span.setStatus(SpanStatus(code: .error, message: error.code.rawValue))
            throw error
        }
    }

    package func observing<Answer: Sendable>(
        _ call: ProviderCall,
        _ send: (_ headers: [(name: String, value: String)]) async -> (answer: Answer, result: ProviderResult)
    ) async -> Answer {
        guard let context = InstrumentationContext.current, context.place != nil else {
            return await metrics.observing(call, send)
        }
        let span = tracer.startSpan("provider \(call.rawValue)", context: context, ofKind: .client)
        defer { span.end() }
        var headers: [(name: String, value: String)] = []
        tracer.inject(span.context, into: &headers, using: HeaderInjector())
        return await metrics.observing(call) { [headers] further in
            let (answer, result) = await send(further + headers)
            span.attributes["synheart.result"] = result.rawValue
            if result != .answered { span.setStatus(SpanStatus(code: .error, message: result.rawValue)) }
            return (answer, result)
        }
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout [(name: String, value: String)]) {
        carrier.append((key, value))
    }
}

extension InstrumentationContext {
    /// The current context, if its trace is recorded.
    static var recorded: InstrumentationContext? {
        guard let current, current.place?.isSampled == true else { return nil }
        return current
    }
}
