internal import AuthService
internal import Hummingbird
internal import NIOCore

/// What a responder knows of the connection that a request came over.
struct ConnectionContext: InitializableFromSource, Sendable {
    typealias Source = ApplicationRequestContextSource

    /// The peer's address.
    let address: ClientAddress

    init(source: ApplicationRequestContextSource) {
        address = ClientAddress(source.channel.remoteAddress?.ipAddress ?? "unknown")
    }
}
