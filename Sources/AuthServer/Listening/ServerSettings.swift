internal import NIOCore

/// Where and how the service listens.
public struct ServerSettings: Sendable {
    /// The address of the public listener. Port 0 picks a free one.
    public var host = "127.0.0.1"
    public var port = 8080
    /// The address of the operations listener.
    public var operationsHost = "127.0.0.1"
    public var operationsPort = 9464
    /// Whether another address than loopback may be served without TLS.
    public var insecureHTTP = false
    public var limits = RequestLimits()
    public var deadlines = ReadDeadlines()
    /// Connections at once, on each listener.
    public var maximumConnections = 4096

    /// The defaults.
    public init() {}
}

/// What a request may not exceed, in bytes.
public struct RequestLimits: Sendable {
    public var headerBlock = 16 * 1024
    public var headerCount = 100
    public var deviceBody = 64 * 1024
    /// The decoded body of a request that `/verify` is asked about.
    public var verifiedBody = 1024 * 1024

    /// The defaults.
    public init() {}

    /// The body of `/verify` itself: base64 of the other one and what stands around it.
    var verifyBody: Int { verifiedBody / 3 * 4 + deviceBody }
}
