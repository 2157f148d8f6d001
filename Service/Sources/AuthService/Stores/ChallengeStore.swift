public import AuthContract

/// A challenge as it was issued: to which app, for what, until when.
public struct IssuedChallenge: Sendable, Hashable {
    /// The 32 random bytes.
    public let bytes: [UInt8]
    public let appID: AppID
    public let purpose: ChallengePurpose
    public let expiresAt: UnixTime

    /// A challenge of its parts.
    public init(bytes: [UInt8], appID: AppID, purpose: ChallengePurpose, expiresAt: UnixTime) {
        self.bytes = bytes
        self.appID = appID
        self.purpose = purpose
        self.expiresAt = expiresAt
    }
}

/// Keeps challenges until they are taken.
///
/// What it guarantees: of any number of takers of one challenge, exactly one gets it. An expired challenge is kept for
/// `IssuedChallenge.keptAfterExpiry` so that "expired" and "unknown" can be told apart. A challenge may be lost or evicted
/// (oldest of the busiest source first): its client starts again.
public protocol ChallengeStore: Sendable {
    /// Keeps a challenge. `source` is whom eviction counts it for: the client's address.
    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError)

    /// Gets and deletes, atomically; nil where there is none.
    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge?
}

extension IssuedChallenge {
    /// Seconds that an expired challenge is kept.
    public static let keptAfterExpiry: Int64 = 600
}
