internal import Bytes
package import Logging

/// Sends spans to an OpenTelemetry collector by OTLP/HTTP, in batches, from its own task.
///
/// A request only adds its spans to a bounded queue. If the collector is slow or gone, spans are dropped and counted.
package final class TraceExporter: Sendable {
    /// Posts a body to the collector.
    package protocol Transport: Sendable {
        /// - Returns: the status of the response.
        /// - Throws: if there is no response within `limit`.
        func post(_ body: [UInt8], within limit: Duration) async throws -> Int
    }

    /// Sizes and times.
    package struct Settings: Sendable {
        /// The largest number of waiting spans.
        package var queue = 4096
        /// The largest number of spans in one request to the collector.
        package var batch = 512
        /// The longest time that a span waits for others.
        package var interval: Duration = .seconds(2)
        /// The deadline of one request to the collector.
        package var deadline: Duration = .seconds(10)
        /// The time limit for sending the remaining spans when the service stops.
        package var flush: Duration = .seconds(2)

        /// The defaults.
        package init() {}
    }

    private struct State: Sendable {
        var spans: [TraceSpan.Record] = []
        var sent: UInt64 = 0
        var dropped: UInt64 = 0
        var isFailing = false
    }

    private let transport: any Transport
    private let settings: Settings
    private let logger: Logger
    private let resource: OTLPResource
    private let state = Locked(State())
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - transport: sends the batches.
    ///   - settings: sizes and times.
    ///   - instance: names this process among those of the service.
    ///   - logger: logs when the collector begins to fail, and when it works again.
    package init(
        over transport: any Transport, settings: Settings = Settings(), instance: String, logger: Logger
    ) {
        self.transport = transport
        self.settings = settings
        self.logger = logger
        resource = OTLPResource(instance: instance)
    }

    /// Spans that the collector accepted, and dropped spans, since the start.
    var counts: (sent: UInt64, dropped: UInt64) { state.withLock { ($0.sent, $0.dropped) } }

    /// The metrics of the exporter.
    package var metrics: [MetricsSource] {
        [
            MetricsSource(
                "synheart_trace_spans_exported_total", kind: .counter, help: "Spans that the collector has taken."
            ) { Double(self.counts.sent) },
            MetricsSource(
                "synheart_trace_spans_dropped_total", kind: .counter,
                help: "Spans that were dropped: the queue was full, or the collector did not take them."
            ) { Double(self.counts.dropped) },
        ]
    }

    /// Adds a span that has ended, or drops it if the queue is full.
    func add(_ span: TraceSpan.Record) {
        let isBatch = state.withLock { state in
            guard state.spans.count < settings.queue else {
                state.dropped &+= 1
                return false
            }
            state.spans.append(span)
            return state.spans.count == settings.batch
        }
        if isBatch { wake.yield() }
    }

    /// Sends batches until the task is cancelled, and then the remaining spans, for at most `Settings.flush`.
    ///
    /// - Parameter sleep: waits for further spans.
    package func run(
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [settings, wake] in
                while (try? await sleep(settings.interval)) != nil { wake.yield() }
            }
            for await _ in wakes where !Task.isCancelled { await sendAll(within: settings.deadline, isLast: false) }
            group.cancelAll()
        }
        // Send in a separate task: the cancellation of this task would also cancel the requests.
        await Task { await sendAll(within: settings.flush, isLast: true) }.value
    }

    /// Sends the waiting spans, and those that arrive meanwhile. After `limit`, the remaining spans wait for the next call. If this
    /// call is the last one, they are dropped.
    private func sendAll(within limit: Duration, isLast: Bool) async {
        let end = ContinuousClock.now + limit
        while isLast || end > .now, case let batch = take(), !batch.isEmpty {
            let left = end - .now
            let failure = left > .zero ? await send(batch, within: left) : "the time is over"
            if failure != nil, Task.isCancelled {
                // The service stops: keep these spans for the last call.
                return state.withLock { $0.spans.insert(contentsOf: batch, at: 0) }
            }
            note(failure, of: batch.count)
        }
    }

    private func note(_ failure: String?, of count: Int) {
        let wasFailing = state.withLock { state in
            if failure == nil { state.sent &+= UInt64(count) } else { state.dropped &+= UInt64(count) }
            defer { state.isFailing = failure != nil }
            return state.isFailing
        }
        if let failure, !wasFailing {
            logger.warning(
                "the collector does not take traces: they are dropped", metadata: ["reason": .string(failure)])
        } else if failure == nil, wasFailing {
            logger.notice("the collector takes traces again")
        }
    }

    private func take() -> [TraceSpan.Record] {
        state.withLock { state in
            let batch = Array(state.spans.prefix(settings.batch))
            state.spans.removeFirst(batch.count)
            return batch
        }
    }

    /// Sends one batch.
    ///
    /// There is no retry: during a retry the queue would fill up, and new spans are more useful than old ones.
    ///
    /// - Returns: the reason why the collector did not accept the batch; nil: the collector accepted it.
    private func send(_ batch: [TraceSpan.Record], within limit: Duration) async -> String? {
        do {
            let status = try await transport.post(
                OTLPBody.json(batch, of: resource), within: min(limit, settings.deadline))
            return (200..<300).contains(status) ? nil : "status \(status)"
        } catch { return LogText.bounded("\(error)", to: LogText.reasonBytes) }
    }
}
