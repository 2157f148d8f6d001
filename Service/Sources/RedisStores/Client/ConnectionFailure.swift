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
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            return "TLS failed: its certificate is for another host"
        case is NIOSSLError, is BoringSSLError: return tls("\(error)")
        default: return "\(error)"
        }
    }

    /// Describes a TLS failure by the error name alone, because BoringSSL's text also has a file and a line of its sources.
    private static func tls(_ text: String) -> String {
        let known = [
            ("CERTIFICATE_VERIFY_FAILED", "its certificate comes from an unknown authority, or has expired"),
            (
                "CERTIFICATE_REQUIRED",
                "it demands a client certificate, which is not supported: set tls-auth-clients no"
            ),
        ].first { text.contains($0.0) }
        if let known { return "TLS failed: \(known.1)" }
        let name = text.firstMatch(of: /OPENSSL_internal:([A-Z0-9_]+)/).map { String($0.1) }
        return "TLS failed: \(name ?? text)"
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
