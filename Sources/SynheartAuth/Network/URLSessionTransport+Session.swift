#if !canImport(Security)
    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLSessionTransport {
        /// A transport over other sessions of the same configuration: on this platform tasks have no separate delegates, and each
        /// request needs a new connection. Cookies and caches are those of the configuration. Redirects are not followed.
        public convenience init(session: URLSession) { self.init(session.configuration) }
    }
#endif
