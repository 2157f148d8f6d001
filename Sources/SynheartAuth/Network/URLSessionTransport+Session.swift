#if !canImport(Security)
    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLSessionTransport {
        /// A transport over other sessions of the same configuration: here tasks have no delegates of their own, and each request needs a
        /// new connection. Cookies and caches are as the configuration has them. Redirects are not followed.
        public convenience init(session: URLSession) { self.init(session.configuration) }
    }
#endif
