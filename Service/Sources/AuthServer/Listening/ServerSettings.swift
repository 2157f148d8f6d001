package import AuthService
internal import Bytes

/// Addresses, certificate and limits of the listeners.
package struct ServerSettings: Sendable {
    /// The address of the public listener. Port 0 picks a free port.
    package var host = "127.0.0.1"
    package var port = 8080
    /// Certificate and key of the public listener; nil: plain HTTP.
    package var tls: TLSFiles?
    /// The trusted proxies. Their `X-Forwarded-…` headers are used.
    package var trustedProxies = TrustedProxies.none
    /// The NAT64 prefixes: IPv6 addresses with such a prefix stand for IPv4 clients.
    package var nat64 = NAT64Prefixes.standard
    /// Whether an address other than loopback may be served without TLS and without trusted proxies. This applies to the
    /// operations listener too.
    package var insecureHTTP = false
    package var operations = OperationsSettings()
    /// A listener that serves only `/metrics`, `/healthz` and `/readyz`, in addition to the operations listener; nil: none.
    package var metrics: MetricsListenerSettings?
    /// The origin at which clients reach the public listener, for the description of the API; nil: unknown.
    package var publicOrigin: String?
    package var limits = RequestLimits()
    package var deadlines = ReadDeadlines()
    /// The largest number of connections on each listener. The default is so large that idle connections lock no client out.
    package var maximumConnections = 16_384
    /// The largest number of connections of one peer address on each listener, except trusted proxies; nil: `maximumConnections` / 4.
    package var maximumConnectionsOfOnePeer: Int?
    /// How long the listeners accept requests after the signal to stop, so that a load balancer notices in time that
    /// `/readyz` answers 503.
    package var drain: Duration = .zero
    /// The time for running requests after the drain.
    package var shutdown: Duration = .seconds(10)

    /// The defaults.
    package init() {}

    /// Refuses plain HTTP for other machines unless a setting allows it, a limit of all bodies that is below the largest body, and
    /// a certificate that cannot be used.
    ///
    /// - Throws: `ConfigurationError`, which names the key at fault.
    package func check() throws(ConfigurationError) {
        guard Self.isLoopback(host) || tls != nil || !trustedProxies.isEmpty || insecureHTTP else {
            throw ConfigurationError(
                "server.host",
                "is not a loopback address: give server.tls_certificate, server.trusted_proxies or "
                    + "server.insecure_http")
        }
        guard Self.isLoopback(operations.host) || operations.tls != nil || operations.insecureHTTP || insecureHTTP
        else {
            throw ConfigurationError(
                "operations.host",
                "is not a loopback address: give operations.tls_certificate or operations.insecure_http")
        }
        guard limits.allBodies >= limits.verifyBody else {
            throw ConfigurationError(
                "limits.all_bodies_bytes", "must be at least \(limits.verifyBody), or the largest body never fits")
        }
        // Do not check a pipe here: it can be read only once, and the listener must read it.
        for case let files? in [tls, operations.tls] where files.canBeReadAgain { _ = try TLSCertificate(files) }
    }

    /// The number of connections that one peer address may have.
    var connectionsOfOnePeer: Int { max(1, maximumConnectionsOfOnePeer ?? maximumConnections / 4) }

    /// Whether only this machine can reach this host.
    package static func isLoopback(_ host: String) -> Bool {
        IPAddress(host)?.isLoopback ?? Loopback.contains(host: host)
    }
}

/// Certificate and key as PEM files. The server re-reads them when they change.
package struct TLSFiles: Sendable, Hashable {
    /// The path of the certificate chain, leaf first.
    package let certificate: String
    package let key: String
    /// The settings' group, for errors: `server` or `operations`.
    let group: String

    /// Files at these paths, as `tls_certificate` and `tls_key` of a group of settings name them.
    package init(certificate: String, key: String, of group: String = "server") {
        self.certificate = certificate
        self.key = key
        self.group = group
    }
}

/// The address of the operations listener, and the names it answers to.
package struct OperationsSettings: Sendable {
    /// The address; port 0 picks a free one.
    package var host = "127.0.0.1"
    package var port = 9464
    /// The names allowed in `Host`, without ports. Another name may come from a browser that a web page directed here (DNS
    /// rebinding).
    package var hosts = ["localhost", "127.0.0.1", "[::1]"]
    /// Certificate and key; nil: plain HTTP.
    package var tls: TLSFiles?
    /// Whether an address other than loopback may be served without TLS. Credentials are then sent unencrypted.
    package var insecureHTTP = false

    /// The defaults.
    package init() {}
}

/// The address of a listener for scrapers and orchestrators. The listener serves nothing secret, so it speaks plain HTTP at any address.
package struct MetricsListenerSettings: Sendable, Hashable {
    /// The address; port 0 picks a free one.
    package var host: String
    package var port: Int

    /// Memberwise initializer.
    package init(host: String = "127.0.0.1", port: Int) {
        self.host = host
        self.port = port
    }
}

/// Limits of a request: sizes in bytes, and the number of header fields.
package struct RequestLimits: Sendable {
    /// The largest size of the request line's target and all header fields together.
    package var headerBlock = 16 * 1024
    package var headerCount = 100
    package var deviceBody = 64 * 1024
    /// The largest decoded body of a request that `/verify` judges.
    package var verifiedBody = 1024 * 1024
    /// The largest total size of the bodies of all unanswered requests, without the first 16 KiB of each.
    package var allBodies = 256 * 1024 * 1024

    /// The defaults.
    package init() {}

    /// The largest body of a `/verify` call: the judged body in base64, and the other members.
    var verifyBody: Int { verifiedBody / 3 * 4 + deviceBody }
}
