import AsyncHTTPClient
import AuthContract
import ClientHTTP
import NIOCore
import NIOHTTP1
import SynheartAuth

/// Sends requests over persistent connections, one for each concurrent request.
///
/// Used instead of URLSession. On Linux, URLSession (swift-corelibs-foundation) uses a whole CPU core while it
/// waits for an answer, because it keeps polling a socket that is ready for writing.
final class PooledTransport: HTTPTransport {
    private let client: HTTPClient

    init(concurrency: Int) {
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = concurrency
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func shutdown() async { try? await client.shutdown() }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await send(request, isChunked: false)
    }

    /// Sends a request, without its body's length if `isChunked`.
    func send(_ request: TransportRequest, isChunked: Bool) async throws(TransportError) -> TransportResponse {
        var message = HTTPClientRequest(url: request.url)
        message.method = HTTPMethod(rawValue: request.method)
        for line in request.headers.lines { message.headers.add(name: line.name, value: line.value) }
        if isChunked {
            message.body = .bytes(request.body, length: .unknown)
        } else if !request.body.isEmpty {
            message.body = .bytes(request.body)
        }
        do {
            let answer = try await client.execute(
                message, timeout: .seconds(max(1, request.deadline.components.seconds)))
            let body = try await answer.body.collect(upTo: request.maximumAnswer)
            return TransportResponse(
                status: Int(answer.status.code), headers: HeaderFields(answer.headers.map { ($0.name, $0.value) }),
                body: Array(body.readableBytesView))
        } catch { throw TransportError("\(error)") }
    }
}
