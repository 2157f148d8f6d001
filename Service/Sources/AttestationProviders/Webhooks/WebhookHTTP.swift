internal import AsyncHTTPClient
internal import AuthContract
package import AuthService
internal import Bytes
internal import ClientHTTP
internal import NIOCore
internal import NIOHTTP1

/// Posts deliveries to receivers. Every attempt is bounded in time. Follows no redirects, and uses only the status of a
/// response.
///
/// Share one transport, and shut it down at the end.
package final class WebhookHTTP: WebhookTransport {
    /// A host and its checked address. A client for this target connects only to this address.
    private struct Target: Hashable {
        let host: String
        let address: String
    }

    private struct Clients {
        var all: [Target: HTTPClient] = [:]
        /// The targets, with the one that was unused for the longest time first.
        var order: [Target] = []
        var isShutDown = false
    }

    private static let maximumClients = 64
    /// The largest number of bytes that are read of a response's body, and the longest time for that. If the body ends within these
    /// bounds, the connection can be reused.
    private static let maximumResponse = 16 * 1024
    private static let responseTime: Duration = .seconds(1)

    private let clients = Locked(Clients())
    private let deadline: Duration

    /// A transport with its own connections.
    ///
    /// - Parameter deadline: the time limit of one attempt, from the lookup of the host to the end of the answer.
    package init(deadline: Duration = .seconds(10)) { self.deadline = deadline }

    package func post(_ request: WebhookRequest) async -> WebhookOutcome {
        do throws(ProviderFailure) {
            return try await within(deadline, orThrow: .tooSlow) { () async throws(ProviderFailure) in
                await self.attempt(request)
            }
        } catch { return .failed("no answer in time") }
    }

    private func attempt(_ request: WebhookRequest) async -> WebhookOutcome {
        let (host, isLoopback) = (request.url.host, request.url.origin.isLoopback)
        do {
            let address = try await ReceiverAddress.find(host, loopback: isLoopback)
            var message = HTTPClientRequest(url: request.url.text)
            message.method = .POST
            for (name, value) in request.headers { message.headers.add(name: name, value: value) }
            message.headers.add(name: "User-Agent", value: "synheart-auth")
            message.body = .bytes(request.body)
            guard let client = client(for: Target(host: host, address: address)) else { return .failed("shut down") }
            let answer = try await client.execute(message, timeout: .nanoseconds(deadline.nanoseconds))
            _ = try? await within(Self.responseTime, orThrow: ProviderFailure.tooSlow as any Error) {
                try await answer.body.collect(upTo: Self.maximumResponse)
            }
            return .answered(status: Int(answer.status.code))
        } catch let failure as ReceiverAddress.Failure {
            return switch failure {
            case .unresolved: .failed("the name of the host does not resolve")
            case .refused: .failed("the host resolves to an address that webhooks may not use")
            }
        } catch {
            // Either this task or the HTTP client may notice the deadline first.
            let isLate = Task.isCancelled || (error as? HTTPClientError) == .deadlineExceeded
            if isLate { return .failed("no answer in time") }
            return .failed(
                error.isTLSFailure
                    ? "TLS failed: the certificate must be valid for the host, from an authority that this machine trusts"
                    : "no connection, or no HTTP answer")
        }
    }

    private func client(for target: Target) -> HTTPClient? {
        let (client, evicted): (HTTPClient?, HTTPClient?) = clients.withLock { clients in
            guard !clients.isShutDown else { return (nil, nil) }
            clients.order.removeAll { $0 == target }
            clients.order.append(target)
            if let known = clients.all[target] { return (known, nil) }
            let new = makeClient(target)
            clients.all[target] = new
            guard clients.order.count > Self.maximumClients else { return (new, nil) }
            return (new, clients.all.removeValue(forKey: clients.order.removeFirst()))
        }
        if let evicted { Task { try? await evicted.shutdown() } }
        return client
    }

    private func makeClient(_ target: Target) -> HTTPClient {
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.idleTimeout = .seconds(30)
        // Connect to the checked address. The certificate is still verified for the name.
        if target.host != target.address { configuration.dnsOverride = [target.host: target.address] }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Closes the connections. Afterwards every delivery fails.
    package func shutdown() async {
        let all = clients.withLock { clients in
            defer { clients = Clients(isShutDown: true) }
            return Array(clients.all.values)
        }
        for client in all { try? await client.shutdown() }
    }
}
