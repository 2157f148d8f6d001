internal import NIOSSL

extension Error {
    /// Whether an HTTP client could not agree with its server on TLS, or refused the server's certificate.
    package var isTLSFailure: Bool { self is NIOSSLError || self is NIOSSLExtraError || self is BoringSSLError }
}
