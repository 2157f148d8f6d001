#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking

    /// Whether a request may use a connection that already served another one.
    enum ConnectionReuse {
        /// Never: if the server has closed the connection, libcurl sends the request again (`Curl_retry_request`), whatever its
        /// method is. No option of URLSession prevents that.
        static func isSafe(for method: String) -> Bool { false }
    }

    /// The way in which URLSession sends the stream of a body.
    enum BodyStreams {
        /// False: URLSession always sends chunks.
        static let keepLength = false
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
