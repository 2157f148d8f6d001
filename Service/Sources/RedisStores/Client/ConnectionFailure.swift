internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// Describes why a connection failed, for the operator.
enum ConnectionFailure {
    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            guard let last = error.connectionErrors.last else { return "its host name is not known" }
            return reason(last.error)
        case let error as IOError: return reason(ofCode: error.errnoCode)
        case ChannelError.connectTimeout: return "it did not answer in time"
        case is NIOSSLError, is BoringSSLError: return "TLS failed: \(error)"
        default: return "\(error)"
        }
    }

    private static func reason(ofCode code: CInt) -> String {
        switch code {
        case ECONNREFUSED: "nothing listens there"
        case ECONNRESET, EPIPE: "the connection was reset"
        case ETIMEDOUT: "it did not answer in time"
        case EHOSTUNREACH, ENETUNREACH: "no route leads there"
        default: String(cString: strerror(code))
        }
    }
}
