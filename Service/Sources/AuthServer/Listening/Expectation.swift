@_spi(Service) internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOHTTP1

/// The `Expect` field of a request (RFC 9110 section 10.1.1).
enum Expectation {
    private static let name = "100-continue"

    /// Whether the client waits for `100 Continue` before it sends a body. HTTP/1.0 knows no such thing, and a request
    /// without a body has nothing to wait with.
    static func isContinue(of head: HTTPRequestHead) -> Bool {
        guard head.version != .http1_0, head.headers.contains(name: "Expect") else { return false }
        let hasBody =
            head.headers.contains(name: "Transfer-Encoding")
            || head.headers["Content-Length"].contains { $0.trimmingOptionalWhitespace != "0" }
        return hasBody && head.headers["Expect"].contains { $0.trimmingOptionalWhitespace.lowercased() == name }
    }

    /// Refuses a request that expects anything but `100 Continue`.
    static func check(_ head: HTTPRequest) throws(Refusal) {
        for value in head.headerFields[values: .expect] where value.lowercased() != name {
            let reason = "Expect may only be 100-continue"
            throw Refusal(.invalidRequest, reason, hint: reason)
        }
    }
}
