#if !canImport(Security)
    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLSessionTransport {
        /// A transport over another session of the same configuration: here tasks have no delegates of their own. Cookies and caches
        /// are as the configuration has them. Redirects are not followed.
        public convenience init(session: URLSession) { self.init(session.configuration) }
    }
#endif
