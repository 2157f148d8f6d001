import Foundation

/// Issued challenges. Each can be used once.
///
/// A server with several processes keeps the challenges in a shared store, with one atomic "get and delete".
public actor Challenges {
    /// Seconds for which a challenge is valid.
    public static let lifetime: TimeInterval = 300
    /// The maximum number of challenges, including used ones. At this number the older half is dropped, and clients that hold one
    /// of these challenges must ask for a new one.
    static let maximum = 100_000

    private var expiries: [[UInt8]: Date] = [:]
    private var inOrder: [[UInt8]] = []

    public init() {}

    /// Makes a challenge of 32 random bytes.
    func issue(at now: Date) -> [UInt8] {
        if inOrder.count >= Self.maximum {
            // Drop half of the challenges at once, so that a full array is not compacted for each new challenge.
            for oldest in inOrder.prefix(Self.maximum / 2) { expiries[oldest] = nil }
            inOrder.removeFirst(Self.maximum / 2)
        }
        let challenge = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        expiries[challenge] = now.addingTimeInterval(Self.lifetime)
        inOrder.append(challenge)
        return challenge
    }

    /// Uses a challenge. Of two requests with the same challenge, only one succeeds.
    func take(_ challenge: [UInt8], at now: Date) throws(Refusal) {
        guard let expiry = expiries.removeValue(forKey: challenge), now < expiry else {
            throw Refusal(.challengeUnknown, "not a challenge of this server, or used, or expired")
        }
    }
}
