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
        /// The session's delegate is asked about certificates and about a proxy's password, and receives metrics. It does not
        /// receive the answers, and is not asked for a server's password, because the request would then be sent again.
        public convenience init(session: URLSession) {
            let exchanges = URLSessionExchanges()
            // The task's delegate gets the callbacks that it implements, the session's delegate all others
            // (https://developer.apple.com/documentation/foundation/urlsessiontask/delegate).
            self.init(session, exchanges) { $0.delegate = exchanges }
        }
    }
#endif
