internal import AuthService
internal import StrictJSON
internal import Tracing

/// The process that creates the spans.
struct OTLPResource: Sendable {
    let instance: String
}

/// The body of an export of traces by [OTLP/HTTP 1.0](https://opentelemetry.io/docs/specs/otlp/#otlphttp).
///
/// It is JSON, not protobuf: every collector accepts both, the project has a JSON writer, and protobuf would need another package
/// or a second writer. The exporter's task writes a body, so its size delays no request.
enum OTLPBody {
    /// The body of a request to `/v1/traces`.
    static func json(_ spans: [TraceSpan.Record], of resource: OTLPResource) -> [UInt8] {
        let process: JSONValue = [
            "attributes": [
                attribute("service.name", .string("synheart-auth")),
                attribute("service.version", .string(Build.version)),
                attribute("service.instance.id", .string(resource.instance)),
            ]
        ]
        let scope: JSONValue = ["name": "synheart-auth", "version": .string(Build.version)]
        let scoped: JSONValue = ["scope": scope, "spans": .array(spans.map { json($0) })]
        let body: JSONValue = ["resourceSpans": [["resource": process, "scopeSpans": [scoped]]]]
        return body.bytes
    }

    private static func json(_ span: TraceSpan.Record) -> JSONValue {
        var object = JSONObject([
            ("traceId", .string(span.place.traceID.text)), ("spanId", .string(TraceContext.text(span.place.spanID))),
        ])
        if let parent = span.parentID { object["parentSpanId"] = .string(TraceContext.text(parent)) }
        object["name"] = .string(span.name)
        object["kind"] = .integer(kind(span.kind))
        // Protobuf's JSON mapping writes 64-bit integers as strings.
        object["startTimeUnixNano"] = .string(String(span.start))
        object["endTimeUnixNano"] = .string(String(max(span.start, span.end)))
        var attributes: [(String, JSONValue)] = []
        span.attributes.forEach { name, value in
            if let value = json(value) { attributes.append((name, value)) }
        }
        object["attributes"] = .array(
            attributes.sorted { $0.0 < $1.0 }.map { name, value in ["key": .string(name), "value": value] })
        if span.hasFailed {
            var status = JSONObject([("code", 2)])
            if let failure = span.failure { status["message"] = .string(failure) }
            object["status"] = .object(status)
        }
        return .object(object)
    }

    private static func attribute(_ name: String, _ value: SpanAttribute) -> JSONValue {
        ["key": .string(name), "value": json(value) ?? ["stringValue": ""]]
    }

    /// The value of an attribute as OTLP writes it; nil for a type that no attribute of this service has.
    private static func json(_ value: SpanAttribute) -> JSONValue? {
        switch value {
        case .string(let text): ["stringValue": .string(text)]
        case .bool(let flag): ["boolValue": .bool(flag)]
        case .int32(let number): ["intValue": .string(String(number))]
        case .int64(let number): ["intValue": .string(String(number))]
        default: nil
        }
    }

    private static func kind(_ kind: SpanKind) -> Int {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }
}
