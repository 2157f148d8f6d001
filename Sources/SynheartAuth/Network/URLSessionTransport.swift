internal import AuthContract
internal import Bytes
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A transport over URLSession.
public final class URLSessionTransport: HTTPTransport {
    private let session: URLSession
    private let exchanges: URLSessionExchanges
    /// Takes a task of the app's own session over, so that the session's delegate goes on serving the app's tasks; nil if the
    /// transport made the session.
    private let takeOver: (@Sendable (URLSessionTask) -> Void)?

    /// A transport with a URLSession of its own: no cookies, no cache, no credentials.
    public convenience init() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        self.init(configuration)
    }

    /// A transport with a session of this configuration.
    convenience init(_ configuration: URLSessionConfiguration) {
        let exchanges = URLSessionExchanges()
        self.init(
            URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil), exchanges, takeOver: nil)
    }

    init(_ session: URLSession, _ exchanges: URLSessionExchanges, takeOver: (@Sendable (URLSessionTask) -> Void)?) {
        (self.session, self.exchanges, self.takeOver) = (session, exchanges, takeOver)
    }

    deinit { if takeOver == nil { session.finishTasksAndInvalidate() } }

    /// Sends the request. A redirect is returned as the answer.
    ///
    /// URLSession escapes some characters of a URL itself. A signature covers the URL as it is sent, so such a URL is refused.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportAnswer {
        guard let url = URL(string: request.url), url.absoluteString == request.url else {
            throw TransportError("the URL has characters that must be escaped", isUnsendable: true)
        }
        #if canImport(Security)
            if request.method.uppercased() == "GET", !request.body.isEmpty || request.bodyFile != nil {
                throw TransportError("URLSession sends no GET with a body", isUnsendable: true)
            }
        #endif
        var message = URLRequest(url: url)
        message.httpMethod = request.method
        for line in request.headers.lines { message.addValue(line.value, forHTTPHeaderField: line.name) }
        if !request.body.isEmpty { message.httpBody = Data(request.body) }
        // URLSession's limit is for idle time, and swift-corelibs-foundation drops its fraction: 0.5 s would be none at all. One
        // second more than the deadline, so that the exchange ends at its deadline, below.
        message.timeoutInterval = Double(request.deadline.wholeMilliseconds) / 1000 + 1
        let task =
            request.bodyFile.map { session.uploadTask(with: message, fromFile: URL(fileURLWithPath: $0)) }
            ?? session.dataTask(with: message)
        takeOver?(task)
        return try await exchanges.run(task, limit: request.maximumAnswer, deadline: request.deadline)
    }
}

/// The running exchanges of one session. Each ends exactly once: by its answer, an error, its size or its deadline.
final class URLSessionExchanges: NSObject, URLSessionDataDelegate {
    private struct Exchange: Sendable {
        let continuation: CheckedContinuation<Result<TransportAnswer, TransportError>, Never>
        let limit: Int
        var body: [UInt8] = []
    }

    private let running = Locked<[Int: Exchange]>([:])

    func run(
        _ task: URLSessionDataTask, limit: Int, deadline: Duration
    ) async throws(TransportError) -> TransportAnswer {
        let identifier = task.taskIdentifier
        let timer = Task {
            guard (try? await Task.sleep(for: deadline)) != nil else { return }
            self.end(identifier, .failure(TransportError("no answer in time")))
            task.cancel()
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                running.withLock { $0[identifier] = Exchange(continuation: continuation, limit: limit) }
                // A cancellation before the line above found nothing to end.
                guard !Task.isCancelled else { return self.end(identifier, Self.cancelled) }
                task.resume()
            }
        } onCancel: {
            self.end(identifier, Self.cancelled)
            task.cancel()
        }.get()
    }

    private static let cancelled = Result<TransportAnswer, TransportError>.failure(TransportError("cancelled"))

    private func end(_ identifier: Int, _ result: Result<TransportAnswer, TransportError>) {
        running.withLock { $0.removeValue(forKey: identifier) }?.continuation.resume(returning: result)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // A signature is for one origin and path, so a redirect is not followed.
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLarge = running.withLock { running in
            guard var exchange = running.removeValue(forKey: dataTask.taskIdentifier) else { return false }
            exchange.body.append(contentsOf: data.prefix(max(0, exchange.limit + 1 - exchange.body.count)))
            let isTooLarge = exchange.body.count > exchange.limit
            running[dataTask.taskIdentifier] = exchange
            return isTooLarge
        }
        guard isTooLarge else { return }
        end(dataTask.taskIdentifier, .failure(.tooLarge))
        dataTask.cancel()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        guard error == nil, let response = task.response as? HTTPURLResponse else {
            let number = (error as NSError?)?.code ?? 0
            return exchange.continuation.resume(returning: .failure(TransportError("no answer (URL error \(number))")))
        }
        let headers = HeaderFields(
            response.allHeaderFields.compactMap { name, value in
                guard let name = name as? String, let value = value as? String else { return nil }
                return (name, value)
            })
        let answer = TransportAnswer(status: response.statusCode, headers: headers, body: exchange.body)
        exchange.continuation.resume(returning: .success(answer))
    }
}
