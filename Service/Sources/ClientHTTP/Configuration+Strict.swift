package import AsyncHTTPClient
internal import NIOSSL

extension HTTPClient.Configuration {
    /// The configuration that every client of this package begins with: TLS 1.2 or later, no redirects, one attempt to connect,
    /// and no answer with a status on which AsyncHTTPClient would trap.
    package static var strict: Self {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        var configuration = Self(tlsConfiguration: tls, redirectConfiguration: .disallow)
        // The callers retry: they know the deadline, and which requests may be repeated.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.http1_1ConnectionDebugInitializer = InvalidStatus.refuse
        configuration.http2StreamChannelDebugInitializer = StreamStatusGuard.add
        return configuration
    }
}
