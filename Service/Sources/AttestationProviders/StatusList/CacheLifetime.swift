/// How long an answer is fresh (RFC 9111 section 4.2): `max-age` less `Age`, within limits.
struct CacheLifetime: Sendable, Hashable {
    /// Seconds that the answer had been in caches when it came.
    let age: Int64
    /// Seconds until it is asked for again.
    let fresh: Int64

    /// Seconds between which a list is asked for again, whatever its server says; and where it says nothing.
    static let limits: ClosedRange<Int64> = 300...86_400
    private static let unsaid: Int64 = 3600

    init(_ answer: ProviderAnswer) {
        age = answer["Age"].flatMap(Int64.init(wholeSeconds:)) ?? 0
        let directives = answer.headers.filter { $0.name.lowercased() == "cache-control" }
            .flatMap { $0.value.split(separator: ",") }
            .map { $0.trimmed.lowercased() }
        let maximum: Int64
        if directives.contains("no-store") || directives.contains("no-cache") {
            maximum = 0
        } else {
            maximum =
                directives.lazy.filter { $0.hasPrefix("max-age=") }
                .compactMap { Int64(wholeSeconds: $0.dropFirst("max-age=".count).filter { $0 != "\"" }) }.first
                ?? Self.unsaid
        }
        fresh = min(max(maximum - age, Self.limits.lowerBound), Self.limits.upperBound)
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { start[...$0] } ?? ""
    }
}
