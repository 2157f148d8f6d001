public import AuthContract

/// A challenge as it was issued: its app, its purpose and its expiry.
public struct IssuedChallenge: Sendable, Hashable {
    /// The 32 random bytes.
    public let bytes: [UInt8]
    /// The app that asked for it. Only this app may use it.
    public let appID: AppID
    /// The allowed use of the challenge.
    public let purpose: ChallengePurpose
    /// When it expires, on the service's clock.
    public let expiresAt: UnixTime

    /// Memberwise initializer.
    public init(bytes: [UInt8], appID: AppID, purpose: ChallengePurpose, expiresAt: UnixTime) {
        self.bytes = bytes
        self.appID = appID
        self.purpose = purpose
        self.expiresAt = expiresAt
    }
}

/// Keeps challenges until they are taken.
///
/// Guarantees:
/// - If several callers take the same challenge, exactly one gets it.
/// - The store keeps a challenge for `IssuedChallenge.keptAfterExpiry` seconds after its expiry, by its own clock, so
///   that the service can tell an expired challenge from an unknown one. After that `take` returns nil.
/// - The store is bounded: when it is full, it evicts the oldest challenge of the client address that has the most
///   challenges. It may also lose a challenge. A client whose challenge is gone asks for a new one.
public protocol ChallengeStore: Sendable {
    /// Keeps a challenge, even one that has just expired.
    ///
    /// - Parameters:
    ///   - challenge: the challenge; its bytes are random, so the store need not handle duplicates.
    ///   - source: the client's address, by which eviction counts challenges.
    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError)

    /// Returns a challenge and deletes it, atomically; nil if there is none. `bytes` may be of any length: they come from
    /// the client.
    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge?
}

extension IssuedChallenge {
    /// Seconds for which a store keeps an expired challenge.
    public static let keptAfterExpiry: Int64 = 600
}
