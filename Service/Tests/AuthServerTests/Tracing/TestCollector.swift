import AuthService
import Bytes
import Logging
import StrictJSON

@testable import AuthServer

/// A collector of OTLP/HTTP that keeps the received spans.
final class TestCollector: TraceExporter.Transport {
    /// A span that the collector received.
    struct Span {
        let json: JSONValue

        var name: String { text("name") ?? "" }
        var traceID: String { text("traceId") ?? "" }
        var id: String { text("spanId") ?? "" }
        var parentID: String? { text("parentSpanId") }

        func text(_ member: String) -> String? { json.object?[member]?.string }

        /// The value of the attribute with this name, if it is a string, or an integer as its digits; nil otherwise.
        subscript(name: String) -> String? {
            let found = json.object?["attributes"]?.array?.first { $0.object?["key"]?.string == name }
            let value = found?.object?["value"]?.object
            return value?["stringValue"]?.string ?? value?["intValue"]?.string
        }
    }

    private struct Unreachable: Error {}

    private let state = Locked((bodies: [[UInt8]](), statuses: [Int?]()))

    /// - Parameter statuses: the statuses of the answers to the first calls; nil for a call that gets no answer. Later
    /// calls get 200.
    init(statuses: [Int?] = []) { state.withLock { $0.statuses = statuses } }

    var bodies: [[UInt8]] { state.withLock { $0.bodies } }

    /// The spans of all exports that the collector answered with 200.
    var spans: [Span] {
        bodies.flatMap { body -> [Span] in
            let resources = (try? JSONValue(parsing: body))?.object?["resourceSpans"]?.array ?? []
            let scopes = resources.flatMap { $0.object?["scopeSpans"]?.array ?? [] }
            return scopes.flatMap { $0.object?["spans"]?.array ?? [] }.map(Span.init)
        }
    }

    func post(_ body: [UInt8], within limit: Duration) async throws -> Int {
        let status = state.withLock { state -> Int? in
            let status = state.statuses.isEmpty ? 200 : state.statuses.removeFirst()
            if status == 200 { state.bodies.append(body) }
            return status
        }
        guard let status else { throw Unreachable() }
        return status
    }

    /// An exporter to this collector.
    func exporter(
        _ change: (inout TraceExporter.Settings) -> Void = { _ in },
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) -> TraceExporter {
        var settings = TraceExporter.Settings()
        change(&settings)
        return TraceExporter(over: self, settings: settings, instance: "one", logger: logger)
    }
}

extension TraceExporter {
    /// Sends the waiting spans, as the service does when it stops.
    func stop() async {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await run { _ in try await Task.sleep(for: .seconds(3600)) }
        }.value
    }
}
