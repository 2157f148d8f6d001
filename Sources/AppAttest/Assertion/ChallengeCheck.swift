internal import Bytes

/// A check that client data has the challenge that the server issued. Challenges are compared in constant time.
public struct ChallengeCheck: Sendable {
    private let check: @Sendable ([UInt8]) -> Bool

    /// The client data is the challenge and nothing else.
    public static func clientDataIs(_ challenge: some Collection<UInt8>) -> Self {
        let challenge = Array(challenge)
        return Self { constantTimeEquals($0, challenge) }
    }

    /// The client data holds the challenge where `extract` finds it. The check fails if `extract` returns nil.
    public static func clientData(
        holds challenge: some Collection<UInt8>,
        foundBy extract: @escaping @Sendable (_ clientData: [UInt8]) -> [UInt8]?
    ) -> Self {
        let challenge = Array(challenge)
        return Self { clientData in
            extract(clientData).map { constantTimeEquals($0, challenge) } ?? false
        }
    }

    func holds(_ clientData: [UInt8]) -> Bool { check(clientData) }
}
