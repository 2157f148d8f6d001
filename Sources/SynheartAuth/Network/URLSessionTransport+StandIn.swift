// On Linux only `Checks/apple-stand-ins` compiles this file, with a stand-in for Apple's Security and with the
// URLSession of swift-corelibs-foundation, which uses libcurl.
#if canImport(Security) && canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking

    enum ConnectionReuse {
        /// Always false, because libcurl repeats any request on a reused connection that the server has closed (`Curl_retry_request`).
        static func isSafe(for method: String) -> Bool { false }
    }

    extension URLSession {
        func upload(_ message: URLRequest, _ file: String) -> URLSessionDataTask {
            uploadTask(with: message, fromFile: URL(fileURLWithPath: file))
        }

        func upload(_ message: URLRequest, _ stream: InputStream, _ length: Int64?) -> URLSessionDataTask {
            var message = message
            message.httpBodyStream = stream
            if let length {
                message.setValue("\(length)", forHTTPHeaderField: "Content-Length")
                // Keep libcurl from sending the body in chunks: a header with a blank value is not sent (`CURLOPT_HTTPHEADER`).
                message.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
            }
            return dataTask(with: message)
        }
    }

    extension URLSessionTask {
        /// Does nothing: on this platform, suspending a task ends its transfer, and resuming it sends the request again.
        func setFlowing(_ isFlowing: Bool) {}
    }

    extension URLSessionExchanges {
        /// Makes the server's 401 the answer, by ending the exchange with the 401, whose response is already complete. On this platform no
        /// disposition returns the 401: each one sends the request again, cancels the task, or, without a credential, never ends the task.
        func answerChallenge(
            _ challenge: URLAuthenticationChallenge, of task: URLSessionTask, in session: URLSession,
            _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            if let response = challenge.failureResponse as? HTTPURLResponse { end(task, with: response) }
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }
#endif
