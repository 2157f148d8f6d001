#if !canImport(Security)
    internal import AuthContract
    internal import Foundation

    /// A transport over libcurl. It sends each request once, over a new connection.
    ///
    /// libcurl repeats a request on a reused connection that the server has closed meanwhile (`Curl_retry_request`), so no
    /// connection is reused. The transport follows no redirect, answers no demand for a password, and keeps no cookies. It uses
    /// the proxy of the environment (`https_proxy`, `no_proxy`) and the system's trusted certificates. It does not ask for
    /// compression, and does not decompress.
    ///
    /// Each exchange has its own thread, so that a slow disk or name server delays no other exchange. There are at most 128
    /// exchanges, including answers that are still being read. Another request waits for a thread within its deadline.
    public final class CurlTransport: HTTPTransport {
        private static let threads = BoundedThreads(limit: 128)

        /// A transport.
        public init() {}

        /// Sends the request. A redirect, or a demand for a password, is returned as the answer.
        ///
        /// A signature covers the request as it is sent. So a URL with characters that must be escaped is refused. A GET or HEAD
        /// with a body is refused too.
        public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            if let problem = Self.problem(with: request) { throw TransportError(problem, isUnsendable: true) }
            let start = ContinuousClock.now
            let body = try await request.bodySource?.sent(for: request)
            let remaining = max(request.deadline - start.duration(to: .now), .zero)
            let exchange = CurlExchange(request, body)
            let outcome = await withDeadline(remaining, TaskSleeper()) {
                await Self.threads.run(leavesBehind: true) { give in exchange.run(give) }
            }
            guard let outcome = outcome ?? nil else {
                exchange.stop()
                throw TransportError(Task.isCancelled ? "cancelled" : "no answer in time")
            }
            return try outcome.get()
        }

        /// The reason why the request cannot be sent as it is; nil if it can.
        private static func problem(with request: TransportRequest) -> String? {
            let scheme = request.url.prefix { $0 != ":" }.lowercased()
            guard scheme == "https" || scheme == "http" else { return "the URL is neither https nor http" }
            guard URL(string: request.url)?.absoluteString == request.url else {
                return "the URL has characters that must be escaped"
            }
            guard request.method.isToken else { return "the method is not a token" }
            if ["GET", "HEAD"].contains(request.method.uppercased()),
                !request.body.isEmpty || request.bodyFile != nil || request.bodySource != nil
            {
                return "a \(request.method) has no body"
            }
            guard request.headers.lines.allSatisfy(HostHeaders.isWellFormed) else {
                return "a header's name is not a token, or its value has a control character"
            }
            return nil
        }
    }

    /// The transport of a configuration for which the app sets none.
    public typealias DefaultTransport = CurlTransport
#endif
