@_spi(Service) internal import AuthContract
internal import Bytes

/// What each origin demanded of this process's requests: an assertion on some paths, or the other signature scheme.
/// The demands are remembered, so that each one costs only one refused request.
final class OriginDemands: Sendable {
    private struct Demands: Sendable {
        /// Path prefixes on which requests need an assertion, normalized for comparison (see `LenientPath`).
        var prefixes: Set<LenientPath> = []
        /// Exact paths that need an assertion.
        var paths: Set<String> = []
        /// The scheme that the origin accepted after it had refused the other one.
        var scheme: SignatureScheme?
    }

    private let origins = Locked<[RequestOrigin: Demands]>([:])

    /// The largest number of prefixes, and of paths, for one origin. A further demand is not remembered, and costs a refused request
    /// each time.
    private static let limit = 64

    /// Whether a request to this path needs an assertion.
    func needsAssertion(_ path: String, at origin: RequestOrigin) -> Bool {
        guard let demands = origins.withLock({ $0[origin] }) else { return false }
        if demands.paths.contains(path) { return true }
        guard !demands.prefixes.isEmpty else { return false }
        return demands.prefixes.contains(where: LenientPath(path).isCovered)
    }

    /// Remembers a demand: its prefix, or only this path if the demand has no prefix that covers it.
    func note(_ demand: AssertionDemand?, on path: String, at origin: RequestOrigin) {
        origins.withLock { origins in
            guard let prefix = demand?.prefix.map({ LenientPath($0) }), LenientPath(path).isCovered(by: prefix) else {
                if origins[origin, default: Demands()].paths.count < Self.limit {
                    origins[origin, default: Demands()].paths.insert(path)
                }
                return
            }
            if origins[origin, default: Demands()].prefixes.count < Self.limit {
                origins[origin, default: Demands()].prefixes.insert(prefix)
            }
        }
    }

    /// The scheme that the origin accepted after it had refused the other one; nil if there is none.
    func scheme(of origin: RequestOrigin) -> SignatureScheme? { origins.withLock { $0[origin]?.scheme } }

    /// Remembers the scheme that the origin accepts.
    func note(_ scheme: SignatureScheme, of origin: RequestOrigin) {
        origins.withLock { $0[origin, default: Demands()].scheme = scheme }
    }
}
