#if !canImport(Security)
    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLSessionTransport {
        /// A transport over new sessions with this session's configuration: on this platform tasks have no separate delegates,
        /// and each request needs a new connection. Cookies are those of the configuration. Answers are not cached, and redirects
        /// are not followed.
        public convenience init(session: URLSession) {
            let configuration = session.configuration.copy() as? URLSessionConfiguration ?? .ephemeral
            configuration.urlCache = nil
            self.init(configuration)
        }
    }
#endif
