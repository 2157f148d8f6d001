internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTPTypes
internal import Synchronization

/// An accepted connection that is not handled yet. If the server ends first, the connection is closed: dropping an unfinished
/// `NIOAsyncChannel` would end the process.
final class AcceptedConnection: ServerChildChannelValue {
    typealias Parts = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    private let parts: Parts
    private let isHandled = Atomic(false)

    /// Wraps a channel. Must be called on the channel's event loop.
    init(_ channel: any Channel) throws {
        parts = try NIOAsyncChannel(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }

    deinit {
        guard !isHandled.load(ordering: .sequentiallyConsistent) else { return }
        Task { [parts] in try? await parts.executeThenClose { _, _ in } }
    }

    var channel: any Channel { parts.channel }

    /// Hands over the channel, which the caller must finish.
    func take() -> Parts {
        isHandled.store(true, ordering: .sequentiallyConsistent)
        return parts
    }
}
