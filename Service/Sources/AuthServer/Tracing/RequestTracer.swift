package import AuthContract
internal import AuthService
package import Tracing

/// Creates the spans of requests, and decides which requests are recorded.
///
/// It is passed to the code that creates spans, and is not the process's global tracer: libraries must not create spans, because
/// this service does not know their attributes.
package struct RequestTracer: Tracer {
    package typealias Span = TraceSpan

    private static let header = "traceparent"

    private let share: Double
    private let exporter: TraceExporter
    private let random: any RandomSource

    /// - Parameters:
    ///   - share: the share of requests that are recorded, from 0 to 1. If a request has a parent span, the parent
    ///     decides.
    ///   - exporter: gets the spans.
    ///   - random: makes ids.
    package init(share: Double, exporter: TraceExporter, random: any RandomSource = SystemRandom()) {
        (self.share, self.exporter, self.random) = (share, exporter, random)
    }

    /// Starts a span: a child of the context's span, or the first span of a trace.
    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> TraceSpan {
        let parent = context()
        guard let place = place(below: parent.place) else { return TraceSpan(unrecordedIn: parent) }
        let record = TraceSpan.Record(
            place: place, parentID: parent.place?.spanID, kind: kind, start: instant().nanosecondsSinceEpoch,
            name: operationName)
        return TraceSpan(record, in: parent, to: exporter)
    }

    /// The trace context of a new span; nil: the span is not recorded.
    private func place(below parent: TraceContext?) -> TraceContext? {
        if let parent {
            return parent.isSampled ? TraceContext(parent.traceID, spanID: number(), isSampled: true) : nil
        }
        // The lower half of the trace id decides, as with TraceIdRatioBased of OpenTelemetry's SDKs. If the request is not
        // recorded, only this half is generated.
        guard share > 0 else { return nil }
        let low = number()
        guard share >= 1 || Double(low >> 11) < share * Double(1 << 53) else { return nil }
        return TraceContext.TraceID(high: number(), low: low).flatMap {
            TraceContext($0, spanID: number(), isSampled: true)
        }
    }

    private func number() -> UInt64 { random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// Does nothing: the exporter sends its spans when the service stops.
    package func forceFlush() {}

    /// Reads the parent from the header `traceparent`. A malformed one is ignored.
    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let place = extractor.extract(key: Self.header, from: carrier).flatMap(TraceContext.init(traceparent:))
        else { return }
        context.place = place
    }

    /// Writes the header `traceparent`. The requests go to Apple and Google, so the data of tracing vendors in `tracestate`
    /// is not passed on.
    package func inject<Carrier, Inject: Injector>(
        _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let place = context.place else { return }
        injector.inject(place.traceparent, forKey: Self.header, into: &carrier)
    }
}
