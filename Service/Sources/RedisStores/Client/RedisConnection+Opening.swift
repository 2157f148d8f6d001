internal import AuthService
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import RESP

/// The settings of a connection.
struct ConnectionSettings: Sendable {
    var login = RedisURL.Login()
    var database = 0
    var tls: NIOSSLContext?
    var deadline: Duration = .seconds(2)
    var maximumInFlight = 8192
    var clientName = "synheart-auth"
    var group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    /// The counts of all connections that use these settings. Copies of the settings share this object.
    let counts = ConnectionCounts()
}

extension RedisConnection {
    /// Connects and logs in.
    static func open(
        _ endpoint: RedisURL.Endpoint, _ settings: ConnectionSettings
    ) async throws(StoreError) -> RedisConnection {
        let connection = try await connect(endpoint, settings)
        do throws(StoreError) {
            try await connection.logIn(settings)
            return connection
        } catch {
            connection.close(because: error)
            throw error
        }
    }

    private static func connect(
        _ endpoint: RedisURL.Endpoint, _ settings: ConnectionSettings
    ) async throws(StoreError) -> RedisConnection {
        do {
            let bootstrap = ClientBootstrap(group: settings.group)
                .connectTimeout(TimeAmount(settings.deadline))
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            return try await bootstrap.connect(host: endpoint.host, port: endpoint.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = ReplyHandler()
                    if let tls = settings.tls {
                        // An IP address cannot be sent as a server name. In that case, the certificate must be for the address.
                        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: 0)) != nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : endpoint.host))
                    }
                    try channel.pipeline.syncOperations.addHandler(handler)
                    let connection = RedisConnection(
                        channel, deadline: settings.deadline, maximumInFlight: settings.maximumInFlight,
                        counts: settings.counts)
                    handler.connection = connection
                    return connection
                }
            }
        } catch {
            throw StoreError(.unavailable, "Redis at \(endpoint) cannot be reached: \(ConnectionFailure.reason(error))")
        }
    }

    private func logIn(_ settings: ConnectionSettings) async throws(StoreError) {
        var handshake = Handshake(settings)
        var next: [RESPCommand]? = handshake.greeting
        while let commands = next { next = try handshake.replied(try await call(commands)) }
    }

    /// Sends commands and throws if a reply is an error.
    func require(_ commands: [RESPCommand], isBounded: Bool = true) async throws(StoreError) -> [RESPValue] {
        let replies = try await call(commands, isBounded: isBounded)
        for case .error(let text) in replies { throw RedisError(text).storeError }
        return replies
    }

    /// Sends a command and throws if the reply is an error.
    @discardableResult
    func require(_ command: RESPCommand) async throws(StoreError) -> RESPValue {
        let reply = try await call(command)
        if case .error(let text) = reply { throw RedisError(text).storeError }
        return reply
    }
}

extension TimeAmount {
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self = .seconds(seconds) + .nanoseconds(attoseconds / 1_000_000_000)
    }
}
