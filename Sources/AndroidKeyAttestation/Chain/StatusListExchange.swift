internal import Bytes

/// A request for a status list, as a value: sending it is left to an HTTP client.
public struct StatusListRequest: Sendable {
    /// The URL to GET. It must be https: the list has no signature, so only TLS authenticates it.
    public let url: String
    /// The header fields.
    public let headers: [(name: String, value: String)]

    /// A request for a list.
    ///
    /// - Parameters:
    ///   - url: Google's address, or that of a copy.
    ///   - entityTag: ``StatusListAnswer/entityTag`` of the answer that contained your current list. The server then may
    ///     answer 304 (RFC 9110 section 13.1.2).
    public init(url: String = RevocationStatusList.googleURL, holding entityTag: String? = nil) {
        self.url = url
        let tag = entityTag.flatMap { StatusListAnswer.isEntityTag($0) ? $0 : nil }
        headers = [("Accept", "application/json")] + (tag.map { [("If-None-Match", $0)] } ?? [])
    }
}

/// A server's answer to a ``StatusListRequest``: a list that was parsed, or the confirmation of your current list.
public struct StatusListAnswer: Sendable {
    /// The result of an answer.
    public enum Content: Sendable {
        /// 200: a list. Replace the current one completely.
        case list(RevocationStatusList)
        /// 304: the current list is up to date.
        case unchanged
    }

    /// The error of a response without a usable list. Keep the current list, and retry later.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The reason, for the log.
        public let reason: String

        public var description: String { reason }
    }

    /// The list, or the result that it is unchanged.
    public let content: Content
    /// The entity tag for the next request (RFC 9110 section 8.8.3); nil if the response has none that can be sent.
    public let entityTag: String?
    /// The age of the response in seconds (RFC 9111 section 4.2.3): the source confirmed the list this long ago. 0 if
    /// the server gives no age.
    public let age: Int64
    /// Seconds until the list should be fetched again: `max-age` minus `age` (RFC 9111 section 4.2), at least 5 minutes, at most
    /// a day. If the server sends no `max-age`, it counts as an hour. If the server sends `no-store` or `no-cache`, `max-age`
    /// counts as 0, so the result is 5 minutes.
    public let freshFor: Int64

    private static let freshLimits: ClosedRange<Int64> = 300...86_400
    private static let freshByDefault: Int64 = 3600

    /// Reads an answer.
    ///
    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - headers: the header fields; names in any case.
    ///   - body: the body: at most ``RevocationStatusList/maximumLength`` bytes.
    /// - Throws: ``Failure`` if the status is not 200 or 304, or the body is not a list. An empty list is valid: keep your
    ///   current list if it has entries.
    public init(
        status: Int, headers: [(name: String, value: String)], body: some Collection<UInt8>
    ) throws(Failure) {
        switch status {
        case 200:
            do { content = .list(try RevocationStatusList(parsing: body)) } catch {
                throw Failure(reason: "not a status list: \(error)")
            }
        case 304: content = .unchanged
        default: throw Failure(reason: "the server answered \(status)")
        }
        func values(_ name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name }.map(\.value)
        }
        entityTag = values("etag").first.flatMap { Self.isEntityTag($0) ? $0 : nil }
        age = values("age").first.flatMap(Self.age) ?? 0
        let lifetime = Self.lifetime(values("cache-control"))
        freshFor = min(max(lifetime - age, Self.freshLimits.lowerBound), Self.freshLimits.upperBound)
    }

    /// The value of `Age` (RFC 9111 section 5.1), at most 2^31. Unlike `max-age`, it is not limited to a day, because an
    /// old copy must not look recent.
    private static func age(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
        return min(Int64(text) ?? .max, 1 << 31)
    }

    private static func lifetime(_ cacheControl: [String]) -> Int64 {
        let directives = cacheControl.flatMap { $0.split(separator: ",") }.map { $0.trimmed.lowercased() }
        if directives.contains("no-store") || directives.contains("no-cache") { return 0 }
        let maximumAges = directives.lazy.filter { $0.hasPrefix("max-age=") }
            .compactMap { directive in
                // `Age` is subtracted before the result is limited to a day.
                Int64(wholeSeconds: directive.dropFirst("max-age=".count).filter { $0 != "\"" }, atMost: 1 << 31)
            }
        return maximumAges.first ?? freshByDefault
    }

    /// Whether a tag can be sent in a request: visible ASCII, and not too long.
    static func isEntityTag(_ text: String) -> Bool {
        (2...256).contains(text.utf8.count) && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { start[...$0] } ?? ""
    }
}
