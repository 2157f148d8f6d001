// Stand-in for a feature of Apple's URLSession that Linux lacks: delegates of single tasks.
@_exported import FoundationNetworking

/// Makes sessions whose tasks can have their own delegates.
public enum StandInSession {
    /// The task's delegate gets the callbacks that it implements, and the app's delegate gets all others.
    ///
    /// Apple documents this rule (https://developer.apple.com/documentation/foundation/urlsessiontask/delegate).
    public static func make(
        _ configuration: URLSessionConfiguration, delegate: any URLSessionDataDelegate & Sendable
    ) -> URLSession {
        URLSession(configuration: configuration, delegate: Router(app: delegate), delegateQueue: nil)
    }

    private final class Router: NSObject, URLSessionDataDelegate {
        private let app: any URLSessionDataDelegate & Sendable

        init(app: any URLSessionDataDelegate & Sendable) { self.app = app }

        private func delegate(of task: URLSessionTask) -> any URLSessionDataDelegate {
            // On Linux, a task without its own delegate returns the session's delegate.
            guard let own = task.delegate as? any URLSessionDataDelegate, own !== self else { return app }
            return own
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            delegate(of: dataTask).urlSession(session, dataTask: dataTask, didReceive: data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            delegate(of: task).urlSession(session, task: task, didCompleteWithError: error)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            delegate(of: task).urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: completionHandler)
        }

        // The SDK's delegate does not implement this method, so the app's delegate gets every challenge.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            app.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
        }
    }
}
