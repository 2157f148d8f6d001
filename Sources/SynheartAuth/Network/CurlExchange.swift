#if !canImport(Security)
    internal import AuthContract
    internal import Bytes
    internal import CLibcurl
    internal import Dispatch
    internal import Foundation

    /// One request and its answer, over libcurl. The thread that runs an exchange may block while it reads the body's
    /// file, asks a name server, or waits for a slow reader of the answer. Waiting for a slow reader slows the server
    /// down.
    ///
    /// Unchecked: only that thread uses the variables.
    final class CurlExchange: @unchecked Sendable {
        typealias Outcome = Result<TransportResponse, TransportError>

        /// The part that other threads use. The reader of a streamed answer retains only this object, not the request and its body.
        private final class Control: Sendable {
            /// Unchecked: `running` is a pointer. Other threads pass it only to `clibcurl_wake`, which any thread may call. The
            /// lock ensures that the transfer is not closed meanwhile.
            private struct State: @unchecked Sendable {
                var running: OpaquePointer?
                var isStopped = false
                var isPaused = false
            }

            private let state = Locked(State())
            /// Signalled when `isStopped` or `isPaused` changes.
            private let change = DispatchSemaphore(value: 0)

            var isStopped: Bool { state.withLock { $0.isStopped } }

            /// Sets the transfer that `stop` wakes up; nil once the transfer has ended.
            func runs(_ running: OpaquePointer?) { state.withLock { $0.running = running } }

            func stop() {
                state.withLock { state in
                    state.isStopped = true
                    if let running = state.running { clibcurl_wake(running) }
                }
                change.signal()
            }

            /// Pauses (false) or continues (true) the answer.
            func setFlowing(_ isFlowing: Bool) {
                state.withLock { $0.isPaused = !isFlowing }
                change.signal()
            }

            func waitWhilePaused() { while state.withLock({ $0.isPaused && !$0.isStopped }) { change.wait() } }
        }

        private let request: TransportRequest
        private let sentBody: SentBody?
        private let control = Control()

        private var file: RegularFile?
        private var sent = 0
        private var head = AnswerHead()
        private var taken = 0
        private var body: [UInt8] = []
        private var stream: AnswerBuffer?
        /// The reason why this exchange made libcurl end the transfer; nil if it did not.
        private var problem: TransportError?
        private var giveHead: ((TransportResponse) -> Void)?

        /// - Parameter body: the body from the request's source; nil if the request has no source.
        init(_ request: TransportRequest, _ body: SentBody?) { (self.request, sentBody) = (request, body) }

        /// Ends the exchange soon, from any thread. An exchange that has not begun sends nothing.
        func stop() { control.stop() }

        /// Sends the request, and gives its answer. If the answer is streamed, gives its head and continues until the end.
        func run(_ give: @Sendable (Outcome) -> Bool) {
            withoutActuallyEscaping(give) { give in
                giveHead = { _ = give(.success($0)) }
                let end = withoutBrokenPipes { transfer() }
                giveHead = nil
                if let stream {
                    stream.end(end)
                } else if let end {
                    _ = give(.failure(end))
                } else {
                    _ = give(.success(TransportResponse(status: head.status ?? 0, headers: head.headers, body: body)))
                }
                stream = nil
            }
        }

        /// Runs the transfer to its end. Returns nil if the answer is complete.
        private func transfer() -> TransportError? {
            do throws(UnreadableBody) {
                file = try (sentBody?.path ?? request.bodyFile).map(RegularFile.init)
            } catch {
                return TransportError("the body cannot be read", isUnsendable: true)
            }
            sentBody?.removeName()
            guard let running = open() else { return TransportError("libcurl does not start", mayHaveArrived: false) }
            defer { clibcurl_close(running) }
            control.runs(running)
            defer { control.runs(nil) }
            while !control.isStopped {
                let state = clibcurl_run(running)
                if state == clibcurl_runs { continue }
                if let problem { return problem }
                if state == clibcurl_done {
                    // libcurl reports an answer that ends within its head as complete.
                    return head.status == nil ? TransportError("the answer ended within its head") : nil
                }
                // The server may answer early, and close the connection before it has read the request. The answer is then complete
                // if its whole body has arrived.
                if let length = head.length, length == taken { return nil }
                return TransportError(
                    "no answer (libcurl error \(clibcurl_error(running)): "
                        + "\(String(cString: clibcurl_error_text(running))))",
                    isUnsendable: state == clibcurl_unsendable, mayHaveArrived: state == clibcurl_failed)
            }
            return TransportError("cancelled")
        }

        private func open() -> OpaquePointer? {
            let method = request.method.uppercased()
            let hasBody = file != nil || !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(method)
            let running = request.method.withCString { name in
                request.url.withCString { url in
                    var parts = clibcurl_request()
                    (parts.method, parts.url) = (name, url)
                    parts.length = hasBody ? file?.length ?? Int64(request.body.count) : -1
                    parts.is_head = method == "HEAD"
                    parts.context = Unmanaged.passUnretained(self).toOpaque()
                    parts.take_line = { CurlExchange.of($0).takeLine(UnsafeBufferPointer(start: $1, count: $2)) }
                    parts.take_body = { CurlExchange.of($0).takeBody(UnsafeBufferPointer(start: $1, count: $2)) }
                    parts.give_body = { CurlExchange.of($0).giveBody(UnsafeMutableBufferPointer(start: $1, count: $2)) }
                    return clibcurl_open(&parts)
                }
            }
            guard let running else { return nil }
            // Leave out the fields that libcurl writes itself.
            for line in request.headers.lines where !HostHeaders.isFraming(line.name) {
                // libcurl does not send `Name:`. It sends `Name;` as a field with an empty value.
                let text = line.value.isEmpty ? "\(line.name);" : "\(line.name): \(line.value)"
                guard clibcurl_add_line(running, text) else {
                    clibcurl_close(running)
                    return nil
                }
            }
            return running
        }

        private static func of(_ context: UnsafeMutableRawPointer?) -> CurlExchange {
            // `open` sets the context.
            Unmanaged<CurlExchange>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
        }

        // MARK: libcurl's callbacks

        private func takeLine(_ line: UnsafeBufferPointer<UInt8>) -> Int {
            let hadStatus = head.status != nil
            guard head.take(line) else {
                problem = TransportError("the answer's head is malformed, too large, or has a transfer coding")
                return 0
            }
            if !hadStatus, let status = head.status, request.streamsAnswer, (200..<300).contains(status) {
                let buffer = AnswerBuffer(
                    flow: { [control] in control.setFlowing($0) }, stop: { [control] in control.stop() })
                stream = buffer
                giveHead?(TransportResponse(status: status, headers: head.headers, stream: buffer.stream))
            }
            return line.count
        }

        private func takeBody(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
            if let stream {
                control.waitWhilePaused()
                guard !control.isStopped else { return 0 }
                stream.append(Array(bytes))
                taken += bytes.count
                return bytes.count
            }
            // An app may set any limit, even a negative one.
            guard bytes.count <= max(0, request.maximumAnswer) - body.count else {
                problem = .tooLarge
                return 0
            }
            body.append(contentsOf: bytes)
            taken += bytes.count
            return bytes.count
        }

        private func giveBody(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
            if let file {
                if let count = file.read(UnsafeMutableRawBufferPointer(buffer)) {
                    // Close the file now, because a streamed answer may last for hours.
                    if file.isAtEnd { self.file = nil }
                    return count
                }
                problem = TransportError("the body cannot be read")
                return clibcurl_abort
            }
            let piece = request.body[sent..<min(sent + buffer.count, request.body.count)]
            _ = buffer.update(fromContentsOf: piece)
            sent += piece.count
            return piece.count
        }
    }

    /// Runs `body` with SIGPIPE blocked: otherwise OpenSSL's write to a closed connection would end the process.
    private func withoutBrokenPipes<Value>(_ body: () -> Value) -> Value {
        var (pipe, earlier, pending) = (sigset_t(), sigset_t(), sigset_t())
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        sigpending(&pending)
        pthread_sigmask(SIG_BLOCK, &pipe, &earlier)
        defer {
            // Consume a pending SIGPIPE. Otherwise it would be delivered when the signal is unblocked.
            if sigismember(&earlier, SIGPIPE) == 0, sigismember(&pending, SIGPIPE) == 0 {
                var now = timespec()
                while sigtimedwait(&pipe, nil, &now) == -1, errno == EINTR {}
            }
            pthread_sigmask(SIG_SETMASK, &earlier, nil)
        }
        return body()
    }
#endif
