internal import AsyncHTTPClient
package import AuthService
internal import Bytes
internal import ClientHTTP
internal import NIOCore
internal import NIOHTTP1

/// The HTTP client for Apple's and Google's services. It verifies certificates against the system's roots, follows no
/// redirects, and decompresses nothing. Every exchange is bounded in time and size.
///
/// Share one client, and shut it down at the end.
package final class ProviderHTTP: Sendable {
    private let client: HTTPClient
    private let observer: (any ProviderObserver)?

    /// A client with its own connections.
    ///
    /// - Parameter observer: observes each request; nil: no observer.
    package init(observer: (any ProviderObserver)? = nil) {
        self.observer = observer
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.idleTimeout = .seconds(30)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 32
        // The observer creates the spans. The client's own spans would be duplicates, and the client would parse each URL
        // again.
        configuration.tracing.tracer = nil
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Closes the connections. Every later request fails.
    package func shutdown() async { try? await client.shutdown() }

    /// Sends a request and reads the whole response.
    ///
    /// - Parameter limit: the deadline for the whole exchange.
    func send(_ request: ProviderRequest, within limit: Duration) async throws(ProviderFailure) -> ProviderResponse {
        guard limit > .zero else { throw .tooSlow }
        guard let observer else { return try await send(request, with: [], within: limit) }
        return try await observer.observing(request.call) {
            headers -> (answer: Result<ProviderResponse, ProviderFailure>, result: ProviderResult) in
            do throws(ProviderFailure) {
                let response = try await self.send(request, with: headers, within: limit)
                return (.success(response), ProviderResult(status: response.status))
            } catch { return (.failure(error), error.result) }
        }.get()
    }

    private func send(
        _ request: ProviderRequest, with headers: [(name: String, value: String)], within limit: Duration
    ) async throws(ProviderFailure) -> ProviderResponse {
        do {
            return try await within(limit, orThrow: ProviderFailure.tooSlow as any Error) {
                try await self.exchange(request, with: headers, within: limit)
            }
        } catch let failure as ProviderFailure {
            throw failure
        } catch is CancellationError {
            throw .cancelled
        } catch is NIOTooManyBytesError {
            throw .tooLarge
        } catch let error as HTTPClientError {
            let isTime = [.deadlineExceeded, .connectTimeout, .readTimeout, .getConnectionFromPoolTimeout].contains(
                error)
            throw isTime ? .tooSlow : .unreachable("\(error)")
        } catch { throw .unreachable("\(error)") }
    }

    private func exchange(
        _ request: ProviderRequest, with headers: [(name: String, value: String)], within limit: Duration
    ) async throws -> ProviderResponse {
        var message = HTTPClientRequest(url: request.url)
        message.method = request.body == nil ? .GET : .POST
        for (name, value) in request.headers + headers { message.headers.add(name: name, value: value) }
        // The provider's support can find the call by this id.
        if let id = RequestID.current { message.headers.add(name: "X-Request-ID", value: id) }
        message.body = request.body.map { .bytes($0) }
        let answer = try await client.execute(message, timeout: .nanoseconds(limit.nanoseconds))
        let body = try await answer.body.collect(upTo: request.maximumResponse)
        // After a cancellation the body ends early and looks complete.
        try Task.checkCancellation()
        return ProviderResponse(
            status: Int(answer.status.code), headers: answer.headers.map { ($0.name, $0.value) },
            body: Array(body.readableBytesView))
    }
}

/// A request: a POST if it has a body, otherwise a GET.
struct ProviderRequest: Sendable {
    let call: ProviderCall
    let url: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    /// The largest response body that is read, in bytes.
    let maximumResponse: Int
}

/// A complete response.
struct ProviderResponse: Sendable {
    let status: Int
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// The first value of a header.
    subscript(header: String) -> String? {
        headers.first { $0.name.lowercased() == header.lowercased() }?.value
    }

    /// Seconds that the service asks to wait (RFC 9110 section 10.2.3). Nil if the header is absent or has a date. Then
    /// our own back-off applies.
    var retryAfter: Int64? { self["Retry-After"].flatMap { Int64(wholeSeconds: $0) } }
}

/// The reason why a request got no response.
enum ProviderFailure: Error, Hashable, CustomStringConvertible {
    case unreachable(String)
    case tooSlow
    case tooLarge
    case cancelled

    var result: ProviderResult {
        switch self {
        case .unreachable: .unreachable
        case .tooSlow: .tooSlow
        case .tooLarge: .tooLarge
        case .cancelled: .cancelled
        }
    }

    var description: String {
        switch self {
        case .unreachable(let reason): "not reached: \(reason.prefix(200))"
        case .tooSlow: "no response in time"
        case .tooLarge: "the response is too large"
        case .cancelled: "cancelled"
        }
    }
}

extension Duration {
    /// The duration in nanoseconds, at most an hour, so that it always fits.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = Swift.min(self, .seconds(3600)).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
