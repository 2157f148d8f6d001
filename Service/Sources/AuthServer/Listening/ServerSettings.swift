internal import Bytes

/// Where and how the service listens.
public struct ServerSettings: Sendable {
    /// The address of the public listener. Port 0 picks a free one.
    public var host = "127.0.0.1"
    public var port = 8080
    /// Certificate and key of the public listener; nil: plain HTTP.
    public var tls: TLSFiles?
    /// Proxies whose `X-Forwarded-…` counts.
    public var trustedProxies = TrustedProxies.none
    /// Whether another address than loopback may be served without TLS and without trusted proxies.
    public var insecureHTTP = false
    public var operations = OperationsSettings()
    /// Where clients reach the public listener, for the description of the API; nil: not known.
    public var publicOrigin: String?
    public var limits = RequestLimits()
    public var deadlines = ReadDeadlines()
    /// Connections at once, on each listener. So many that clients which only hold theirs keep nobody out.
    public var maximumConnections = 16_384
    /// Connections of one peer address at once, on each listener, unless it is a trusted proxy's; nil: a quarter of all.
    public var maximumConnectionsOfOnePeer: Int?
    /// How long requests in flight may take to finish after the signal to stop.
    public var shutdown: Duration = .seconds(10)

    /// The defaults.
    public init() {}

    /// Refuses settings that would serve strangers without encryption, and a certificate that cannot be used.
    ///
    /// - Throws: `ConfigurationError`, with the key at fault.
    public func check() throws(ConfigurationError) {
        guard Self.isLoopback(host) || tls != nil || !trustedProxies.isEmpty || insecureHTTP else {
            throw ConfigurationError(
                "server.host",
                "is not a loopback address: give server.tls_certificate, server.trusted_proxies or "
                    + "server.insecure_http")
        }
        guard Self.isLoopback(operations.host) || operations.insecureHTTP else {
            throw ConfigurationError(
                "operations.host", "is not a loopback address: that needs operations.insecure_http")
        }
        guard limits.allBodies >= limits.verifyBody else {
            throw ConfigurationError(
                "limits.all_bodies_bytes", "must be at least \(limits.verifyBody), or the largest body never fits")
        }
        _ = try certificate()
    }

    /// The certificate of the public listener, read from its files.
    func certificate() throws(ConfigurationError) -> TLSCertificate? {
        guard let tls else { return nil }
        return try TLSCertificate(tls)
    }

    /// The connections that one peer address may have now.
    var connectionsOfOnePeer: Int { max(1, maximumConnectionsOfOnePeer ?? maximumConnections / 4) }

    /// Whether nobody but this machine can reach this host.
    public static func isLoopback(_ host: String) -> Bool {
        IPAddress(host)?.isLoopback ?? Loopback.contains(host: host)
    }
}

/// Certificate and key, PEM files; read again when they change.
public struct TLSFiles: Sendable, Hashable {
    /// The chain, leaf first.
    public let certificate: String
    public let key: String

    /// Files at these paths.
    public init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// Where the operations listener listens, and whom it answers.
public struct OperationsSettings: Sendable {
    /// The address; port 0 picks a free one.
    public var host = "127.0.0.1"
    public var port = 9464
    /// The names that `Host` may have, without ports. Another one is a browser that was led here.
    public var hosts = ["localhost", "127.0.0.1", "[::1]"]
    /// Whether another address than loopback may be served: credentials cross it in the clear.
    public var insecureHTTP = false

    /// The defaults.
    public init() {}
}

/// What a request may not exceed, in bytes.
public struct RequestLimits: Sendable {
    /// The request line's target and all header fields.
    public var headerBlock = 16 * 1024
    public var headerCount = 100
    public var deviceBody = 64 * 1024
    /// The decoded body of a request that `/verify` is asked about.
    public var verifiedBody = 1024 * 1024
    /// The bodies of all requests that were not answered yet, without the first 16 KiB of each.
    public var allBodies = 256 * 1024 * 1024

    /// The defaults.
    public init() {}

    /// The body of `/verify` itself: base64 of the other one and what stands around it.
    var verifyBody: Int { verifiedBody / 3 * 4 + deviceBody }
}
