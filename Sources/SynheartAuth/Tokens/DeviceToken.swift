/// A short-lived token that says which device asks: a JWT of type `synheart-device+jwt`.
public struct DeviceToken: Sendable, Hashable {
    /// The JWT. Whoever has it is taken for the device until it ends, unless the backend checks a signature too.
    public let token: String
    /// How long it still is good.
    public let remaining: Duration
}

extension DeviceToken: CustomStringConvertible, CustomReflectable {
    /// Without the token.
    public var description: String { "DeviceToken(remaining: \(remaining))" }

    /// Without the token.
    public var customMirror: Mirror { Mirror(self, children: ["remaining": remaining]) }
}

/// The tokens of one identity, in memory only.
struct TokenCache: Sendable {
    struct Entry: Sendable {
        let token: String
        /// On the continuous clock.
        let fetchedAt: Duration
        let life: Duration
        /// The key that the token confirms; after a rotation another one is due.
        let thumbprint: String

        func remaining(_ now: Duration) -> Duration { fetchedAt + life - now }
        func isFresh(_ now: Duration) -> Bool { remaining(now) > life / 2 }
    }

    private var entries: [String: Entry] = [:]

    /// Audiences are few; a host that invents them does not fill the memory.
    private static let limit = 16

    subscript(audience: String?) -> Entry? {
        get { entries[audience ?? ""] }
        set {
            if entries.count >= Self.limit, entries[audience ?? ""] == nil { entries.removeAll() }
            entries[audience ?? ""] = newValue
        }
    }
}
