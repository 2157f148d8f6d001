/// A short-lived token that names the device: a JWT, by default of type `synheart-device+jwt`.
public struct DeviceToken: Sendable, Hashable {
    /// The JWT, a secret: until it expires, anyone who has it can pretend to be the device, unless the backend also checks a signature.
    public let token: String
    /// The time until the token expires, measured when the SDK returned the token.
    public let remaining: Duration

    /// Memberwise initializer.
    public init(token: String, remaining: Duration) {
        self.token = token
        self.remaining = remaining
    }
}

extension DeviceToken: CustomStringConvertible, CustomReflectable {
    /// A description without the token.
    public var description: String { "DeviceToken(remaining: \(remaining))" }

    /// A mirror without the token.
    public var customMirror: Mirror { Mirror(self, children: ["remaining": remaining]) }
}

/// A token request under way. Only callers with the same key join it: the token of an earlier identity may name another user.
struct TokenFetch: Sendable {
    let task: RunningOperation<DeviceToken>.Work
    let thumbprint: String
}

/// The tokens of one identity, cached in memory.
struct TokenCache: Sendable {
    struct Entry: Sendable {
        let token: String
        /// The time when the token was requested, on the continuous clock.
        let fetchedAt: Duration
        let life: Duration
        /// The thumbprint of the key that the token names. After a rotation a new token is due.
        let thumbprint: String

        func remaining(_ now: Duration) -> Duration { fetchedAt + life - now }
        func isFresh(_ now: Duration) -> Bool { remaining(now) > life / 2 }
    }

    private var entries: [String: Entry] = [:]

    /// The most audiences in the cache. Without a limit, an app that always asks for new audiences would fill the memory.
    private static let limit = 16

    subscript(audience: String?) -> Entry? {
        get { entries[audience ?? ""] }
        set {
            if entries.count >= Self.limit, entries[audience ?? ""] == nil { entries.removeAll() }
            entries[audience ?? ""] = newValue
        }
    }
}
