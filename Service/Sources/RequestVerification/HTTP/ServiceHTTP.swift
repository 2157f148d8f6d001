internal import AsyncHTTPClient
package import AuthContract
internal import ClientHTTP
internal import NIOCore
internal import NIOHTTP1

/// HTTP to the auth service: persistent connections, one deadline for each exchange, bounded answers, no redirects, no proxies
/// from environment variables.
///
/// The connections close when the last reference to this object is released.
final class ServiceHTTP: Sendable {
    /// The largest answer that is read, in bytes. A usual answer of the service has a few hundred bytes.
    static let answerLimit = 65_536

    private let client: HTTPClient
    private let timeout: Duration

    /// - Parameters:
    ///   - timeout: the deadline for each exchange.
    ///   - connections: the maximum number of concurrent connections.
    init(timeout: Duration, connections: Int) {
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = .nanoseconds(timeout.wholeNanoseconds)
        configuration.connectionPool.idleTimeout = .seconds(30)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        configuration.httpVersion = .http1Only
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        self.timeout = timeout
    }

    deinit { client.shutdown { _ in } }

    /// Closes the connections. Afterwards every exchange fails.
    func shutdown() async { try? await client.shutdown() }

    /// Sends a request and reads the whole answer.
    func exchange(_ request: ServiceRequest) async throws -> ServiceResponse {
        try await withThrowingTaskGroup(of: ServiceResponse.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await self.send(request) }
            group.addTask {
                try await self.waitForDeadline()
                throw ServiceTooSlow()
            }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
        }
    }

    /// Returns after the timeout, or throws as soon as the task is cancelled.
    ///
    /// `Task.sleep` would leave a timer of Dispatch behind for each exchange, until the timeout. A timer of the event loop ends
    /// with the exchange.
    private func waitForDeadline() async throws {
        let timer = client.eventLoopGroup.any().scheduleTask(in: .nanoseconds(timeout.wholeNanoseconds)) {}
        await withTaskCancellationHandler {
            try? await timer.futureResult.get()
        } onCancel: {
            timer.cancel()
        }
        try Task.checkCancellation()
    }

    private func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        var message = HTTPClientRequest(url: request.url)
        message.method = request.body == nil ? .GET : .POST
        for line in request.headers.lines { message.headers.add(name: line.name, value: line.value) }
        message.body = request.body.map { .bytes($0) }
        let answer = try await client.execute(message, timeout: .nanoseconds(timeout.wholeNanoseconds))
        let headers = HeaderFields(answer.headers.lazy.map { ($0.name, $0.value) })
        let body: [UInt8]?
        do {
            body = Array(try await answer.body.collect(upTo: Self.answerLimit).readableBytesView)
        } catch is NIOTooManyBytesError { body = nil }
        // After a cancellation the body ends early and looks complete.
        try Task.checkCancellation()
        return ServiceResponse(status: Int(answer.status.code), headers: headers, body: body)
    }
}

/// A request to the service: a POST if it has a body, otherwise a GET.
package struct ServiceRequest: Sendable {
    package let url: String
    package let headers: HeaderFields
    package let body: [UInt8]?
}

/// An answer of the service.
package struct ServiceResponse: Sendable {
    package let status: Int
    package let headers: HeaderFields
    /// The body; nil if it is longer than `ServiceHTTP.answerLimit`.
    package let body: [UInt8]?

    /// Memberwise initializer.
    package init(status: Int, headers: HeaderFields, body: [UInt8]?) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The seconds of `Retry-After`, at most 300; nil if it is absent or not a number.
    var retryAfter: Int64? {
        guard let text = headers.values("Retry-After").first, !text.isEmpty,
            text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        return min(Int64(text) ?? 300, 300)
    }
}

private struct ServiceTooSlow: Error, CustomStringConvertible {
    var description: String { "no answer in time" }
}

extension Duration {
    /// The duration in nanoseconds. It is limited to an hour, so that the number fits in an `Int64`.
    fileprivate var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = Swift.min(self, .seconds(3600)).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
