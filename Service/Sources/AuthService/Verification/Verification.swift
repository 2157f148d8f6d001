public import AuthContract
internal import Crypto

/// The verdict of `/verify` on a request of another service.
public struct VerifyOutcome: Sendable {
    /// Accepted, observed, or refused.
    public let result: Result<VerifyResponse, Refusal>
    /// The assertion that a refused request lacks: the value of `X-Synheart-Assertion` beside `ASSERTION_REQUIRED`.
    public let missingAssertion: AssertionDemand?
    /// Whether a refusal is about the request. Otherwise it is about what the caller asked beside it.
    public let isVerdict: Bool

    init(
        _ result: Result<VerifyResponse, Refusal>, missingAssertion: AssertionDemand? = nil, isVerdict: Bool = true
    ) {
        self.result = result
        self.isVerdict = isVerdict
        self.missingAssertion = missingAssertion
    }
}

/// A verification that another service may repeat after a timeout, within a minute and on any node: with the same credential,
/// `verification_id` and content.
struct Verification: Sendable, Hashable {
    /// A digest of all three, which identifies the verification.
    let digest: [UInt8]

    init(of request: VerifyRequest, named id: String, by credential: String) {
        let content = SHA256.hash(data: request.bytes)
        digest = Array(
            SHA256.hash(data: Array("synheart-auth/verification/v1\n\(credential)\n\(id)\n".utf8) + content))
    }
}

extension RequestVerifier {
    /// Records the verification's progress with the counter of its assertion. If the store fails, a retry may be refused.
    func note(
        _ step: ClaimTag.Step, _ counter: UInt32, in verification: Verification?, _ request: SignedRequest
    ) async {
        guard let verification else { return }
        _ = try? await replay.claim(
            [], of: request.deviceID, timestamp: request.timestamp, expiresAt: request.timestamp + ReplayClaim.life,
            now: request.now, futureWindow: request.app.record.signature.futureWindowSeconds,
            tag: ClaimTag(of: step, counter, in: verification, by: request.deviceID))
    }

    /// Whether the stored counter is that of this assertion, and the same verification raised it within the last minute.
    ///
    /// - Throws: 503 if another call of the same verification may be raising it at this moment.
    func isRepeated(
        _ object: [UInt8], by evidence: AppAttestEvidence, _ verification: Verification?, _ request: SignedRequest
    ) async throws(Refusal) -> Bool {
        guard let verification, evidence.counter > 0 else { return false }
        var before = evidence
        before.counter -= 1
        guard (try? request.app.verifyAssertion(object, by: before, over: request.message)) == evidence.counter else {
            return false
        }
        func holds(_ step: ClaimTag.Step) async throws(Refusal) -> Bool {
            let tag = ClaimTag(of: step, evidence.counter, in: verification, by: request.deviceID)
            return try await storeCall { () async throws(StoreError) in
                try await replay.holds(tag, of: request.deviceID, now: request.now)
            }
        }
        if try await holds(.raised) { return true }
        guard try await !holds(.begun) else {
            throw Refusal(.serviceUnavailable, "the same verification is under way", retryAfter: 1)
        }
        return false
    }
}
