internal import AuthContract
internal import Crypto
internal import Logging
internal import StrictJSON

/// A cache of the service's published keys. It keeps them for their max-age. An unknown `kid` makes it fetch them
/// again, at most once a minute. After a failed fetch, the next one begins at least 5 s later.
///
/// All waiting tokens share one fetch. A token whose key is known and not expired never waits.
actor KeySet {
    /// The bounds of the time for which a set is kept, in seconds. Within them, the max-age decides.
    private static let lifeBounds: ClosedRange<Int64> = 60...3600
    private static let lifeWithoutMaximumAge: Duration = .seconds(300)
    /// How long expired keys are still used while new ones cannot be fetched.
    private static let staleLife: Duration = .seconds(3600)
    /// The shortest pauses between two fetches: after a failed fetch, and before a fetch for an unknown `kid`.
    private static let pauseAfterFailure: Duration = .seconds(5)
    private static let pauseForUnknown: Duration = .seconds(60)

    private struct Loaded: Sendable {
        let keys: [String: P256.Signing.PublicKey]
        let life: Duration
        let readAt: Duration
    }

    private let request: ServiceRequest
    private let exchange: RequestVerifier.Exchange
    private let uptime: @Sendable () -> Duration
    private let logger: Logger
    private var loaded: Loaded?
    private var askedAt: Duration?
    private var hasFailed = false
    private var reading: Task<Void, Never>?

    /// - Parameter uptime: a time that never goes backwards.
    init(
        url: String, exchange: @escaping RequestVerifier.Exchange, uptime: @escaping @Sendable () -> Duration,
        logger: Logger
    ) {
        request = ServiceRequest(url: url, headers: HeaderFields([("Accept", "application/json")]), body: nil)
        self.exchange = exchange
        self.uptime = uptime
        self.logger = logger
    }

    /// The key with this id; nil if it is not published.
    ///
    /// - Throws: `TokenError.unavailable` if there are no keys that may still be used.
    func key(_ id: String) async throws(TokenError) -> P256.Signing.PublicKey? {
        let now = uptime()
        let isOld = loaded.map { now - $0.readAt >= $0.life } ?? true
        if isOld || loaded?.keys[id] == nil { await read(at: now, isOld: isOld) }
        guard let loaded, now - loaded.readAt < loaded.life + Self.staleLife else { throw .unavailable }
        return loaded.keys[id]
    }

    /// Fetches the keys, or waits for the running fetch. If the last fetch began too recently, does nothing.
    private func read(at now: Duration, isOld: Bool) async {
        if reading == nil {
            let pause = hasFailed ? Self.pauseAfterFailure : isOld ? .zero : Self.pauseForUnknown
            if let askedAt, now - askedAt < pause { return }
            askedAt = now
            // Fetch in a separate task, so that a cancelled caller does not cancel the fetch for other callers.
            reading = Task { await load(at: now) }
        }
        await reading?.value
    }

    private func load(at now: Duration) async {
        defer { reading = nil }
        hasFailed = true
        do {
            let response = try await exchange(request)
            guard response.status == 200, let body = response.body, let keys = Self.keys(in: body) else {
                return logger.error("the auth service's keys could not be read: status \(response.status)")
            }
            loaded = Loaded(keys: keys, life: Self.life(response.headers), readAt: now)
            hasFailed = false
        } catch {
            logger.error("the auth service's keys could not be read", metadata: ["reason": "\("\(error)".prefix(200))"])
        }
    }

    private static func life(_ headers: HeaderFields) -> Duration {
        for directive in headers.values("Cache-Control").joined(separator: ",").split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1).map { $0.drop { $0 == " " } }
            guard parts.count == 2, parts[0].lowercased() == "max-age", let seconds = Int64(wholeSeconds: parts[1])
            else {
                continue
            }
            return .seconds(min(max(seconds, lifeBounds.lowerBound), lifeBounds.upperBound))
        }
        return lifeWithoutMaximumAge
    }

    /// The ES256 public keys of a key set, by key id; nil if the bytes are not a valid key set. Keys of other types, uses
    /// and algorithms are skipped.
    static func keys(in bytes: [UInt8]) -> [String: P256.Signing.PublicKey]? {
        guard let set = (try? JSONValue(parsing: bytes))?.object, let listed = set["keys"]?.array else { return nil }
        var keys: [String: P256.Signing.PublicKey] = [:]
        for jwk in listed {
            guard let members = jwk.object else { return nil }
            // Skip keys for another use or algorithm, even malformed ones.
            guard members["use"] ?? "sig" == "sig", members["alg"] ?? "ES256" == "ES256" else { continue }
            do {
                guard let published = try PublishedKey(jwk) else { continue }
                guard let id = members["kid"]?.string else { return nil }
                keys[id] = published.key
            } catch { return nil }
        }
        return keys
    }
}
