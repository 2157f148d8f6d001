public import AuthContract
public import Hummingbird
public import NIOCore
public import RequestVerification

/// A context that tells routes who signed the request.
///
/// Your own context must also conform to `RemoteAddressRequestContext` if the verifier trusts proxies.
public protocol VerificationRequestContext: RequestContext {
    /// The result of ``VerificationMiddleware``; nil if the request did not pass through it. Nothing else sets it.
    var verification: VerificationAnswer? { get set }
}

extension VerificationRequestContext {
    /// The device that signed the request; nil if only observe mode lets the request pass, or if it was not verified.
    public var identity: VerifiedIdentity? { verification?.identity }
}

/// A minimal context for ``VerificationMiddleware``.
public struct VerifiedRequestContext: VerificationRequestContext, RemoteAddressRequestContext {
    /// The storage that Hummingbird itself needs.
    public var coreContext: CoreRequestContextStorage
    /// The result of ``VerificationMiddleware``.
    public var verification: VerificationAnswer?
    /// The peer address; nil if the connection has none.
    public let remoteAddress: SocketAddress?

    /// The context of a request.
    public init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}
