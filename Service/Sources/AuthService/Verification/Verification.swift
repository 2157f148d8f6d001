public import AuthContract
internal import Crypto

/// A verification that another service may repeat after a timeout, within a minute and on any node: with the same credential,
/// `verification_id` and content.
struct Verification: Sendable, Hashable {
    /// A digest of credential, id and content, which identifies the verification.
    let digest: [UInt8]

    init(of request: VerifyRequest, named id: String, by credential: String) {
        let content = SHA256.hash(data: request.bytes)
        digest = Array(
            SHA256.hash(data: Array("synheart-auth/verification/v1\n\(credential)\n\(id)\n".utf8) + content))
    }
}

extension RequestVerifier {
    /// Records that the verification is about to raise the counter of its assertion to `counter`, or has raised it. If
    /// the store fails, a retry of the verification may be refused.
    func note(
        _ step: ClaimTag.Step, _ counter: UInt32, in verification: Verification?, _ request: SignedRequest
    ) async {
        guard let verification else { return }
        _ = try? await replay.claim(
            [], of: request.deviceID, timestamp: request.timestamp, expiresAt: request.timestamp + ReplayClaim.life,
            now: request.now, futureWindow: request.app.claimWindow(at: request.timestamp),
            tag: ClaimTag(of: step, counter, in: verification, by: request.deviceID))
    }

    /// Whether the same verification raised the stored counter to the counter of this assertion within the last minute. Another
    /// request may have raised it further since.
    ///
    /// - Throws: 503 if another call of the same verification may be raising it at this moment.
    func isRepeated(
        _ object: [UInt8], by evidence: AppAttestKeyState, _ verification: Verification?, _ request: SignedRequest
    ) async throws(Refusal) -> Bool {
        guard let verification else { return false }
        var before = evidence
        before.counter = 0
        guard let counter = try? request.app.verifyAssertion(object, by: before, over: request.message),
            counter <= evidence.counter
        else { return false }
        func holds(_ step: ClaimTag.Step) async throws(Refusal) -> Bool {
            let tag = ClaimTag(of: step, counter, in: verification, by: request.deviceID)
            return try await storeCall { () async throws(StoreError) in
                try await replay.holds(tag, of: request.deviceID, now: request.now)
            }
        }
        if try await holds(.raised) { return true }
        // If another request raised the counter further, no call can raise it to this counter any more.
        if counter == evidence.counter, try await holds(.begun) {
            throw Refusal(.serviceUnavailable, "the same verification is under way", retryAfter: 1)
        }
        return false
    }
}

extension Credential {
    /// The app of another service's request: the app that the request names. If the request does not name exactly one, it is the
    /// credential's only app.
    ///
    /// A request that names its app twice or in a malformed way does not identify its app. Then only a credential for a single
    /// app identifies it. The request may name an app that the credential is not for.
    ///
    /// - Throws: `ContractError` if neither the request nor the credential identifies an app.
    public func app(claimedIn headers: HeaderFields) throws(ContractError) -> AppID {
        do throws(ContractError) { return try AppID(headers.one(HeaderName.appID)) } catch {
            guard scope.named.count == 1, let only = scope.named.first else { throw error }
            return only
        }
    }

    /// Refuses a credential that may not ask about the requests of this app.
    package func requireQuestions(about app: AppID) throws(Refusal) {
        guard role == .service, scope.covers(app) else {
            let apps = scope == .allApps ? "all apps" : scope.named.map(\.text).sorted().joined(separator: ", ")
            throw Refusal(
                setUp: .forbidden, "asked about \(app), and credential \(id) has role \(role.rawValue) for \(apps)")
        }
    }
}
