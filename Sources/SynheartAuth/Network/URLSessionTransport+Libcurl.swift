#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking

    /// Whether a request may use a connection that already served another one.
    enum ConnectionReuse {
        /// Never: if the server has closed the connection, libcurl sends the request again (`Curl_retry_request`), whatever its
        /// method is. No option of URLSession prevents that.
        static func isSafe(for method: String) -> Bool { false }
    }

    extension URLSession {
        /// A task that sends a file in pieces, with its length.
        ///
        /// `uploadTask(with:fromFile:)` would do the same, but swift-corelibs-foundation reads the file ahead on another queue, and
        /// stops the process if a piece arrives after the transfer has ended (`_PauseState.setState`): when the caller cancels, the
        /// connection ends, or the answer comes early. It reads a stream only when libcurl asks for more, on a queue that all
        /// sessions of the process share: so a disk that hangs delays all requests.
        func upload(_ message: URLRequest, _ file: String) throws -> URLSessionDataTask {
            let stream = try FileStream(file)
            return upload(message, stream, stream.length)
        }

        /// A task that sends a stream, with its length if it is known.
        func upload(_ message: URLRequest, _ stream: InputStream, _ length: Int64?) -> URLSessionDataTask {
            var message = message
            message.httpBodyStream = stream
            // Otherwise a POST would call the body a form. A header with a blank value is not sent (`CURLOPT_HTTPHEADER`).
            if message.value(forHTTPHeaderField: "Content-Type") == nil {
                message.setValue(" ", forHTTPHeaderField: "Content-Type")
            }
            if let length {
                message.setValue("\(length)", forHTTPHeaderField: "Content-Length")
                // Otherwise libcurl would send chunks, which servers such as S3 refuse.
                message.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
            }
            return dataTask(with: message)
        }
    }

    /// A regular file as a stream of the bytes that it has when it is opened. A file that has become shorter is an error, and the
    /// bytes by which it has become longer are not sent.
    final class FileStream: InputStream {
        let length: Int64
        private let descriptor: Int32
        private var remaining: Int64

        init(_ path: String) throws(UnreadableBody) {
            // Opening a FIFO would wait for its writer.
            descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            var information = stat()
            let isFile =
                descriptor >= 0 && fstat(descriptor, &information) == 0 && information.st_mode & S_IFMT == S_IFREG
            length = isFile ? Int64(information.st_size) : 0
            remaining = length
            super.init(data: Data())
            guard isFile else { throw UnreadableBody() }
        }

        deinit { if descriptor >= 0 { Foundation.close(descriptor) } }

        override var streamStatus: Status { .notOpen }
        override var hasBytesAvailable: Bool { remaining > 0 }
        override func open() {}
        override func close() {}

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
            guard remaining > 0 else { return 0 }
            let limit = Int(min(Int64(maxLength), remaining))
            var count = Foundation.read(descriptor, buffer, limit)
            while count < 0, errno == EINTR { count = Foundation.read(descriptor, buffer, limit) }
            guard count > 0 else { return -1 }
            remaining -= Int64(count)
            return count
        }
    }

    extension URLSessionTask {
        /// Does nothing: on this platform, suspending a task ends its transfer, and resuming it sends the request again.
        func setFlowing(_ isFlowing: Bool) {}
    }

    extension URLSessionExchanges {
        /// Returns the 401, whose response is already complete. On this platform every disposition sends the request again,
        /// cancels the task, or, without a credential, never ends it.
        func answerChallenge(
            _ challenge: URLAuthenticationChallenge, of task: URLSessionTask, in session: URLSession,
            _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            if let response = challenge.failureResponse as? HTTPURLResponse { end(task, with: response) }
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }
#endif
