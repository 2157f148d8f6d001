internal import AuthService
internal import Bytes
package import Tracing

/// A span of a request. If it is not recorded, it only carries the trace context.
///
/// Like log lines, it has no signatures, bodies, proofs or credentials, and only hashed device ids.
package struct TraceSpan: Tracing.Span {
    /// The data of a span, complete when the span has ended.
    struct Record: Sendable {
        let place: TraceContext
        let parentID: UInt64?
        let kind: SpanKind
        let start: UInt64
        var name: String
        var attributes = SpanAttributes()
        var failure: String?
        var hasFailed = false
        var end: UInt64 = 0
    }

    /// The data that change until the span ends.
    private final class Recording: Sendable {
        let record: Locked<Record?>
        let exporter: TraceExporter

        init(_ record: Record, _ exporter: TraceExporter) {
            (self.record, self.exporter) = (Locked(record), exporter)
        }
    }

    /// The largest number of attributes, and the largest number of bytes in the text of an attribute.
    private static let maximumAttributes = 32
    private static let maximumText = 512

    package let context: InstrumentationContext
    /// Nil: the span is not recorded.
    private let recording: Recording?

    /// A span that is recorded, and exported when it ends.
    init(_ record: Record, in parent: InstrumentationContext, to exporter: TraceExporter) {
        var context = parent
        context.place = record.place
        (self.context, recording) = (context, Recording(record, exporter))
    }

    /// A span that is not recorded.
    init(unrecordedIn context: InstrumentationContext) { (self.context, recording) = (context, nil) }

    package var isRecording: Bool { recording?.record.withLock { $0 != nil } ?? false }

    package var operationName: String {
        get { recording?.record.withLock { $0?.name } ?? "" }
        nonmutating set { change { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { recording?.record.withLock { $0?.attributes } ?? [:] }
        nonmutating set { change { $0.attributes = Self.bounded(newValue) } }
    }

    package func setStatus(_ status: SpanStatus) {
        change { record in
            record.hasFailed = status.code == .error
            record.failure = record.hasFailed ? status.message.map { LogText.bounded($0, to: Self.maximumText) } : nil
        }
    }

    /// Marks the span as failed. The error is not recorded, because its text may have data that must not be logged.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        change { $0.hasFailed = true }
    }

    /// Does nothing: no span of this service has events or links.
    package func addEvent(_ event: SpanEvent) {}
    /// Does nothing: no span of this service has events or links.
    package func addLink(_ link: SpanLink) {}

    /// Ends the span and gives it to the exporter, once.
    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        guard let recording else { return }
        var ended = recording.record.withLock { record in
            defer { record = nil }
            return record
        }
        ended?.end = instant().nanosecondsSinceEpoch
        if let ended { recording.exporter.add(ended) }
    }

    private func change(_ body: (inout Record) -> Void) {
        recording?.record.withLock { record in
            guard var changed = record else { return }
            body(&changed)
            record = changed
        }
    }

    private static func bounded(_ attributes: SpanAttributes) -> SpanAttributes {
        var bounded = SpanAttributes()
        var room = maximumAttributes
        attributes.forEach { name, value in
            guard room > 0 else { return }
            room -= 1
            if case .string(let text) = value {
                bounded[name] = LogText.bounded(text, to: maximumText)
            } else {
                bounded.set(name, value: value)
            }
        }
        return bounded
    }
}

extension InstrumentationContext {
    private enum PlaceKey: InstrumentationContextKey {
        typealias Value = TraceContext
        static var nameOverride: String? { "traceparent" }
    }

    /// The trace context of the current span; nil: the request has no trace.
    var place: TraceContext? {
        get { self[PlaceKey.self] }
        set { self[PlaceKey.self] = newValue }
    }
}
