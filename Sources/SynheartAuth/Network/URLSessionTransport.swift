#if canImport(Security)
    internal import AuthContract
    internal import Bytes
    internal import Foundation

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// A transport over URLSession. It sends each request once.
    ///
    /// URLSession sends a request again by itself in three cases, and the second copy may take effect too. In two of them, a redirect
    /// and an authentication challenge, this transport returns the 3xx or the 401 instead. The third case is an idempotent request on a
    /// reused connection that the server has closed meanwhile. So each PUT and DELETE gets its own session with a new connection. Over
    /// the app's own session URLSession may still repeat a PUT or a DELETE, which the service then refuses as a replay.
    public final class URLSessionTransport: HTTPTransport {
        /// A session for many exchanges.
        private struct Shared: Sendable {
            let session: URLSession
            let exchanges: URLSessionExchanges
            /// Sets the delegate of a task of the app's own session, so that the session's delegate still serves the app's other
            /// tasks; nil if the transport made the session.
            let takeOver: (@Sendable (URLSessionTask) -> Void)?
        }

        private let shared: Shared
        /// The configuration for sessions of single exchanges; nil if all exchanges use the app's own session.
        private let configuration: URLSessionConfiguration?

        /// A transport with its own URLSession: no cookies, no cache, no credentials.
        public convenience init() {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpCookieStorage = nil
            configuration.httpShouldSetCookies = false
            configuration.urlCache = nil
            configuration.urlCredentialStorage = nil
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            self.init(configuration)
        }

        /// A transport with sessions of this configuration.
        init(_ configuration: URLSessionConfiguration) {
            shared = Self.open(configuration)
            self.configuration = configuration
        }

        /// A transport over the app's own session.
        init(
            _ session: URLSession, _ exchanges: URLSessionExchanges,
            takeOver: @escaping @Sendable (URLSessionTask) -> Void
        ) {
            shared = Shared(session: session, exchanges: exchanges, takeOver: takeOver)
            configuration = nil
        }

        deinit { if shared.takeOver == nil { shared.session.finishTasksAndInvalidate() } }

        private static func open(_ configuration: URLSessionConfiguration) -> Shared {
            let exchanges = URLSessionExchanges()
            let session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
            return Shared(session: session, exchanges: exchanges, takeOver: nil)
        }

        /// Sends the request. A redirect, or a demand for a password, is returned as the answer.
        ///
        /// URLSession escapes some characters of a URL itself. A signature covers the URL as it is sent, so such a URL is refused.
        public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            guard let url = URL(string: request.url), url.absoluteString == request.url else {
                throw TransportError("the URL has characters that must be escaped", isUnsendable: true)
            }
            // URLSession refuses a GET with a body, and reports the body as too large. Other transports of this SDK refuse a HEAD
            // with a body as well.
            if ["GET", "HEAD"].contains(request.method.uppercased()),
                !request.body.isEmpty || request.bodyFile != nil || request.bodySource != nil
            {
                throw TransportError("a \(request.method) has no body", isUnsendable: true)
            }
            var message = URLRequest(url: url)
            message.httpMethod = request.method
            for line in request.headers.lines { message.addValue(line.value, forHTTPHeaderField: line.name) }
            if !request.body.isEmpty { message.httpBody = Data(request.body) }
            let start = ContinuousClock.now
            let body = try await request.bodySource?.sent(for: request)
            let remaining = max(request.deadline - start.duration(to: .now), .zero)
            // URLSession's limit is for idle time. Add one second, so that the exchange ends at its deadline below. A streamed answer
            // may pause for longer: only its head has a deadline.
            message.timeoutInterval = request.streamsAnswer ? 86_400 : Double(remaining.wholeMilliseconds) / 1000 + 1
            guard let configuration, !ConnectionReuse.isSafe(for: request.method) else {
                return try await Self.exchange(message, request, body, remaining, shared)
            }
            let own = Self.open(configuration)
            defer { own.session.finishTasksAndInvalidate() }
            return try await Self.exchange(message, request, body, remaining, own)
        }

        private static func exchange(
            _ message: URLRequest, _ request: TransportRequest, _ body: SentBody?, _ deadline: Duration,
            _ shared: Shared
        ) async throws(TransportError) -> TransportResponse {
            let task: URLSessionDataTask
            do {
                task =
                    try body?.task(message, request.bodySource?.length, in: shared.session)
                    ?? request.bodyFile.map { shared.session.upload(message, $0) }
                    ?? shared.session.dataTask(with: message)
            } catch {
                throw TransportError("the body cannot be read: \(error)", isUnsendable: true)
            }
            shared.takeOver?(task)
            return try await shared.exchanges.run(
                task, limit: request.maximumAnswer, deadline: deadline, streams: request.streamsAnswer,
                body: request.bodySource)
        }
    }

    /// The running exchanges of one session. Each ends exactly once: with its answer, with an error, when its answer
    /// becomes too large, or at its deadline. A streaming exchange returns the head, and ends when its stream ends.
    final class URLSessionExchanges: NSObject, URLSessionDataDelegate {
        private struct Exchange: Sendable {
            let continuation: CheckedContinuation<Result<TransportResponse, TransportError>, Never>
            let limit: Int
            let streams: Bool
            var body: [UInt8] = []
        }

        private let running = Locked<[Int: Exchange]>([:])
        /// The streamed bodies of exchanges whose callers already have the head.
        private let streaming = Locked<[Int: AnswerBuffer]>([:])
        /// The bodies of the tasks that may still read them.
        private let bodies = Locked<[Int: BodySource]>([:])

        func run(
            _ task: URLSessionDataTask, limit: Int, deadline: Duration, streams: Bool, body: BodySource? = nil
        ) async throws(TransportError) -> TransportResponse {
            let identifier = task.taskIdentifier
            if let body { bodies.withLock { $0[identifier] = body } }
            let timer = Task {
                guard (try? await Task.sleep(for: deadline)) != nil else { return }
                self.stop(task, .failure(TransportError("no answer in time")))
            }
            defer { timer.cancel() }
            return try await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    running.withLock {
                        $0[identifier] = Exchange(continuation: continuation, limit: limit, streams: streams)
                    }
                    // A cancellation before the exchange was stored found nothing to end, so check again.
                    guard !Task.isCancelled else { return self.stop(task, Self.cancelled) }
                    task.resume()
                }
            } onCancel: {
                self.stop(task, Self.cancelled)
            }.get()
        }

        private static let cancelled = Result<TransportResponse, TransportError>.failure(TransportError("cancelled"))

        /// Ends an exchange without an answer. Cancels the task before the exchange's caller continues, because that caller
        /// may then release or change the body.
        private func stop(_ task: URLSessionTask, _ result: Result<TransportResponse, TransportError>) {
            let exchange = running.withLock { $0.removeValue(forKey: task.taskIdentifier) }
            task.cancel()
            exchange?.continuation.resume(returning: result)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            // A signature is for one origin and path, so a redirect is not followed. swift-corelibs-foundation, over which the tests
            // on Linux run, traps if the handler is called for a cancelled task, so call it before the exchange can end, or never.
            running.withLock { running in
                if running[task.taskIdentifier] != nil { completionHandler(nil) }
            }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            // Give the server no password: with one, URLSession would send the request again.
            answerChallenge(challenge, of: task, in: session, completionHandler)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            if let response = response as? HTTPURLResponse, (200..<300).contains(response.statusCode) {
                beginStream(dataTask, response)
            }
            completionHandler(.allow)
        }

        /// Answers with the head, if the exchange streams.
        private func beginStream(_ task: URLSessionDataTask, _ response: HTTPURLResponse) {
            let identifier = task.taskIdentifier
            let exchange = running.withLock { running in
                running[identifier]?.streams == true ? running.removeValue(forKey: identifier) : nil
            }
            guard let exchange else { return }
            let buffer = AnswerBuffer(flow: { task.setFlowing($0) }, stop: { task.cancel() })
            streaming.withLock { $0[identifier] = buffer }
            exchange.continuation.resume(
                returning: .success(
                    TransportResponse(
                        status: response.statusCode, headers: Self.headers(response), stream: buffer.stream)))
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            if let buffer = streaming.withLock({ $0[dataTask.taskIdentifier] }) { return buffer.append(Array(data)) }
            let isTooLarge = running.withLock { running in
                guard var exchange = running.removeValue(forKey: dataTask.taskIdentifier) else { return false }
                // An app may set any limit, even a negative one.
                let room = max(0, max(0, exchange.limit) - exchange.body.count)
                let isTooLarge = data.count > room
                exchange.body.append(contentsOf: data.prefix(room))
                running[dataTask.taskIdentifier] = exchange
                return isTooLarge
            }
            if isTooLarge { stop(dataTask, .failure(.tooLarge)) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            bodies.withLock { $0[task.taskIdentifier] = nil }
            if let buffer = streaming.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) {
                return buffer.end((error as NSError?).map { TransportError("URL error \($0.code)") })
            }
            guard let exchange = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
            guard error == nil, let response = task.response as? HTTPURLResponse else {
                let number = (error as NSError?)?.code ?? 0
                return exchange.continuation.resume(
                    returning: .failure(TransportError("no answer (URL error \(number))")))
            }
            exchange.continuation.resume(returning: .success(Self.answer(response, exchange.body)))
        }

        /// Ends the exchange of a task with this response and the body so far.
        func end(_ task: URLSessionTask, with response: HTTPURLResponse) {
            guard let exchange = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
            exchange.continuation.resume(returning: .success(Self.answer(response, exchange.body)))
        }

        private static func answer(_ response: HTTPURLResponse, _ body: [UInt8]) -> TransportResponse {
            TransportResponse(status: response.statusCode, headers: headers(response), body: body)
        }

        private static func headers(_ response: HTTPURLResponse) -> HeaderFields {
            HeaderFields(
                response.allHeaderFields.compactMap { name, value in
                    guard let name = name as? String, let value = value as? String else { return nil }
                    return (name, value)
                })
        }
    }

    /// The transport of a configuration for which the app sets none.
    public typealias DefaultTransport = URLSessionTransport
#endif
