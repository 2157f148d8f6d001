#if !canImport(FoundationNetworking)
    internal import Foundation

    /// Whether a request may use a connection that already served another one.
    enum ConnectionReuse {
        /// Whether a request with this method may use a reused connection: every method except PUT and DELETE.
        ///
        /// If the server has closed the connection, CFNetwork sends an idempotent request again, and reports other requests as
        /// failed (https://developer.apple.com/library/archive/qa/qa1941/). A second copy of a safe request, such as a GET,
        /// does no harm.
        static func isSafe(for method: String) -> Bool { !["PUT", "DELETE"].contains(method.uppercased()) }
    }

    extension URLSession {
        /// A task that sends a file in pieces, with its length.
        func upload(_ message: URLRequest, _ file: String) -> URLSessionDataTask {
            uploadTask(with: message, fromFile: URL(fileURLWithPath: file))
        }

        /// A task that sends a stream. If its length is known, the length is sent instead of chunks, so that a truncated body is
        /// never taken for a complete one.
        func upload(_ message: URLRequest, _ stream: InputStream, _ length: Int64?) -> URLSessionDataTask {
            var message = message
            message.httpBodyStream = stream
            if let length { message.setValue("\(length)", forHTTPHeaderField: "Content-Length") }
            return dataTask(with: message)
        }
    }

    extension URLSessionTask {
        /// Pauses or continues the answer. A task that is suspended reads nothing more, and has no time limit
        /// (https://developer.apple.com/documentation/foundation/urlsessiontask/suspend()).
        func setFlowing(_ isFlowing: Bool) { isFlowing ? resume() : suspend() }
    }

    extension URLSessionExchanges {
        /// Makes the server's 401 the answer, and leaves questions about the connection (its certificates, a proxy's password) to
        /// the session's delegate.
        func answerChallenge(
            _ challenge: URLAuthenticationChallenge, of task: URLSessionTask, in session: URLSession,
            _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let space = challenge.protectionSpace
            let aboutConnection = [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate]
            guard space.isProxy() || aboutConnection.contains(space.authenticationMethod) else {
                return completionHandler(.rejectProtectionSpace, nil)
            }
            let delegate = session.delegate as? any URLSessionTaskDelegate
            let isAsked: Void? =
                delegate === self
                ? nil
                : delegate?.urlSession?(
                    session, task: task, didReceive: challenge, completionHandler: completionHandler)
            if isAsked == nil { completionHandler(.performDefaultHandling, nil) }
        }
    }
#endif
