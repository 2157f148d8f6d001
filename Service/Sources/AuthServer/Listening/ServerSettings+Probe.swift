internal import Foundation
internal import NIOCore
internal import NIOPosix

extension ServerSettings {
    /// Tries to listen at each address briefly, and returns the addresses that fail.
    package func unavailableListeners() async -> [(error: ConfigurationError, isInUse: Bool)] {
        var errors: [(ConfigurationError, Bool)] = []
        var addresses = [("server.port", host, port), ("operations.port", operations.host, operations.port)]
        if let metrics { addresses.append(("metrics.port", metrics.host, metrics.port)) }
        for (key, host, port) in addresses {
            do {
                let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .bind(host: host, port: port).get()
                try await channel.close()
            } catch {
                let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
                errors.append(
                    (
                        ConfigurationError(key, "cannot listen at \(host) port \(port): \(reason)"),
                        (error as? IOError)?.errnoCode == EADDRINUSE
                    ))
            }
        }
        return errors
    }
}
