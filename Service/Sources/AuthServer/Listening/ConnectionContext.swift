internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTPTypes

/// What a responder knows of the connection that a request came over.
struct ConnectionContext: Sendable {
    /// The peer's address; nil where the socket has none.
    let peer: IPAddress?
    /// The address that rate limits apply to, unless a trusted proxy forwarded another one.
    let address: ClientAddress
    /// Whether the connection was made to a loopback address of this machine.
    let isLocal: Bool
    private let channel: any Channel

    init(_ channel: any Channel) {
        self.channel = channel
        peer = IPAddress(channel.remoteAddress)
        address = ClientAddress(peer?.description ?? "unknown")
        isLocal = IPAddress(channel.localAddress)?.isLoopback ?? false
    }

    /// Sends `100 Continue` where the client of the request being answered waits for it. Answers to earlier requests of the
    /// connection have been written by then.
    func sendContinue() async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
    }
}

/// Answers the requests of a listener.
protocol ListenerResponder: Sendable {
    /// Throws only what the library answers by itself: an `HTTPParserError`.
    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response
}

/// Where a request came from and where it was sent to, as far as the peer can be believed.
struct RequestProvenance: Sendable {
    /// Whom limits count the request for.
    let address: ClientAddress
    /// `http` or `https`.
    let scheme: String
    let authority: String

    /// - Throws: `ContractError` where `Host` does not stand exactly once.
    init(
        of request: HTTPRequest, over connection: ConnectionContext, trusting proxies: TrustedProxies
    ) throws(ContractError) {
        let hosts = request.headerFields[values: .host]
        guard let host = hosts.first, hosts.count == 1 else { throw ContractError("Host must stand once") }
        guard let peer = connection.peer, proxies.contain(peer) else {
            address = connection.address
            scheme = request.scheme ?? "http"
            authority = Self.believed(host, isLocal: connection.isLocal)
            return
        }
        let client = proxies.client(of: peer, forwardedFor: request.headerFields[values: .forwardedFor])
        address = ClientAddress(client.description)
        // The nearest proxy wrote the last word.
        scheme = Self.lastWord(request.headerFields[values: .forwardedProto]) ?? request.scheme ?? "http"
        // Unless it writes none, and what the client wrote came through.
        authority = Self.believed(
            Self.lastWord(request.headerFields[values: .forwardedHost]) ?? host,
            isLocal: connection.isLocal && client.isLoopback)
    }

    /// A name of this machine that came from elsewhere is a claim of the client's, nothing more.
    private static func believed(_ authority: String, isLocal: Bool) -> String {
        guard !isLocal else { return authority }
        let claimsLoopback = (try? RequestOrigin(scheme: "http", authority: authority))?.isLoopback ?? false
        return claimsLoopback ? "" : authority
    }

    private static func lastWord(_ values: [String]) -> String? {
        values.last?.split(separator: ",").last.map { $0.filter { $0 != " " && $0 != "\t" } }
    }
}
