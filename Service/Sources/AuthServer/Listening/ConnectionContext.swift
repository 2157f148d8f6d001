internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTPTypes

/// The connection that a request came over. It is a class, so that the requests of a connection share one copy.
final class ConnectionContext: Sendable {
    /// The peer address; nil if the socket has none.
    let peer: IPAddress?
    /// The address that rate limits apply to, unless a trusted proxy forwarded another one.
    let address: ClientAddress
    /// Whether the connection was made to a loopback address of this machine.
    let isLocal: Bool
    /// The prefixes of addresses that stand for an IPv4 client.
    fileprivate let nat64: NAT64Prefixes
    private let channel: any Channel

    init(_ channel: any Channel, nat64: NAT64Prefixes) {
        self.channel = channel
        self.nat64 = nat64
        peer = IPAddress(channel.remoteAddress)
        address = ClientAddress(peer?.description ?? "unknown", nat64: nat64)
        isLocal = IPAddress(channel.localAddress)?.isLoopback ?? false
    }

    /// Sends `100 Continue`, for which the client waits. A request is handled only when the responses to the connection's earlier
    /// requests are written, so the `100` cannot come before them.
    func sendContinue() async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
    }
}

/// Answers the requests of a listener.
protocol ListenerResponder: Sendable {
    /// - Throws: an `HTTPParserError` only, which the HTTP library answers.
    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response
}

extension HTTPRequest {
    /// The request's id: that of a trusted proxy (1 to 128 letters, digits, `.`, `_` and `-`), else a new one.
    func requestID(
        over connection: ConnectionContext, trusting proxies: TrustedProxies, _ random: any RandomSource
    ) -> String {
        let sent = headerFields[values: .requestID]
        guard let id = sent.first, sent.count == 1, let peer = connection.peer, proxies.contain(peer),
            (1...128).contains(id.utf8.count),
            id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "_" || $0 == "-") })
        else { return RandomUUID(from: random).text }
        return id
    }
}

extension RequestProvenance {
    /// The client address, scheme and authority of a request.
    ///
    /// `X-Forwarded-…` is used only if the peer is a trusted proxy.
    ///
    /// - Throws: `ContractError` unless there is exactly one `Host`.
    init(
        of request: HTTPRequest, over connection: ConnectionContext, trusting proxies: TrustedProxies
    ) throws(ContractError) {
        let hosts = request.headerFields[values: .host]
        guard let host = hosts.first, hosts.count == 1 else { throw ContractError("there must be exactly one Host") }
        guard let peer = connection.peer, proxies.contain(peer) else {
            self.init(
                address: connection.address, scheme: request.scheme ?? "http",
                authority: Self.believed(host, isLocal: connection.isLocal))
            return
        }
        let client = proxies.client(of: peer, forwardedFor: request.headerFields[values: .forwardedFor])
        // The nearest proxy appended the last element. Some proxies do not set X-Forwarded-Host, and pass on the client's header,
        // so `believed` checks the authority.
        let authority = Self.lastElement(request.headerFields[values: .forwardedHost]) ?? host
        self.init(
            address: proxies.contain(client)
                ? ClientAddress(unnamedBy: peer.description)
                : ClientAddress(client.description, nat64: connection.nat64),
            scheme: Self.lastElement(request.headerFields[values: .forwardedProto]) ?? request.scheme ?? "http",
            authority: Self.believed(authority, isLocal: connection.isLocal && client.isLoopback))
    }

    /// The authority; empty if a client on another machine names a loopback host.
    private static func believed(_ authority: String, isLocal: Bool) -> String {
        guard !isLocal else { return authority }
        let claimsLoopback = (try? RequestOrigin(scheme: "http", authority: authority))?.isLoopback ?? false
        return claimsLoopback ? "" : authority
    }

    private static func lastElement(_ values: [String]) -> String? {
        values.last?.split(separator: ",").last.map { $0.filter { $0 != " " && $0 != "\t" } }
    }
}
