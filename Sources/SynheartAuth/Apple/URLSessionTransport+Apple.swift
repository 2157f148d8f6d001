#if canImport(Security)
    // On Linux, `Checks/apple-stand-ins` compiles this file.
    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLSessionTransport {
        /// A transport over the app's own session: its proxies, its TLS settings, its metrics. Cookies and caches are those of
        /// the session. Redirects are not followed. A background session is not suitable: its tasks cannot have separate
        /// delegates.
        ///
        /// URLSession asks the session's delegate about certificates and about a proxy's password, and gives it the metrics. The
        /// delegate does not receive the answers. It is not asked for a server's password, because with a password URLSession
        /// would send the request again.
        public convenience init(session: URLSession) {
            let exchanges = URLSessionExchanges()
            // The task's delegate gets the callbacks that it implements, the session's delegate all others
            // (https://developer.apple.com/documentation/foundation/urlsessiontask/delegate).
            self.init(session, exchanges) { $0.delegate = exchanges }
        }
    }
#endif
