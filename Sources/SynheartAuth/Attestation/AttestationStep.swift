internal import AuthContract

/// Step 5 of a registration: gets evidence from the provider, and handles each of its failures.
struct AttestationStep: Sendable {
    let context: IdentityContext
    let candidate: RegistrationAttempt.Candidate

    func run(
        _ subject: (_ handle: String?) -> AttestationSubject
    ) async throws(RegistrationFailure) -> AttestationEvidence {
        var hasNewHandle = false
        while true {
            let handle = try await handle()
            let failure: SynheartAuthError
            let isSilent: Bool
            do throws(AttestationError) {
                return try await context.attest(subject(handle))
            } catch {
                failure = .provider(error)
                isSilent = error.code == .noAnswer
            }
            if failure.remedy == .askProviderAgain { throw pause(failure) }
            // The provider cannot attest. The only other evidence is the key's own attestation. It names a used challenge, so the
            // service would refuse it.
            if candidate.key.isAttestationSpent, failure.code == .attestationUnavailable {
                throw RegistrationFailure.keyAttestationSpent(failure)
            }
            // Apple's rule: discard the key id after any error but an unavailable provider. A missing answer is not an error.
            if handle != nil, !isSilent { try await context.record(.attestationKeyForgotten) }
            guard failure.remedy == .newHandle, !hasNewHandle else { throw RegistrationFailure(error: failure) }
            hasNewHandle = true
        }
    }

    /// The failure of an unavailable provider. It requests a pause, after which the same handle and nonce are tried again. If the
    /// challenge would not outlive the pause, it requests an attempt with the same handle and a new challenge instead. After the
    /// last pause it requests neither.
    private func pause(_ error: SynheartAuthError) -> RegistrationFailure {
        guard let delay = RetryPolicy.registration.delay(after: candidate.refusals, random: context.random) else {
            return RegistrationFailure(error: error)
        }
        guard context.clock.continuous + delay < candidate.challenge.goodUntil else {
            return RegistrationFailure(error: error, remedy: .newChallenge)
        }
        var next = candidate
        next.refusals += 1
        return RegistrationFailure(error: error, pause: RegistrationFailure.Pause(delay: delay, next: next))
    }

    /// The handle to attest with: persisted before its first use, and not yet attested; nil if the provider needs none.
    private func handle() async throws(RegistrationFailure) -> String? {
        do throws(SynheartAuthError) {
            let record = try await context.ledger.load()
            let isOurs = record.attestationOwner == nil || record.attestationOwner == context.attestation.handleOwner
            // A key of another bundle cannot be used here. The record keeps that key until a new one replaces it.
            if let key = record.attestationKey, !key.isUsed, isOurs { return key.id }
        } catch {
            throw RegistrationFailure(error: error)
        }
        let id: String?
        do throws(AttestationError) {
            id = try await context.makeHandle()
        } catch {
            throw RegistrationFailure(error: .handleNotMade(error))
        }
        if let id { try await context.record(.attestationKeyMade(id: id, owner: context.attestation.handleOwner)) }
        return id
    }
}

extension SynheartAuthError {
    /// A failure to make a handle. Codes other than `unsupported` and `noAnswer` are treated as a refusal: their remedies need a
    /// handle.
    static func handleNotMade(_ error: AttestationError) -> SynheartAuthError {
        let code: AttestationError.Code = [.unsupported, .noAnswer].contains(error.code) ? error.code : .refused
        return .provider(AttestationError(code, reason: error.reason))
    }
}
