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
            do throws(AttestationError) {
                return try await context.attest(subject(handle))
            } catch {
                failure = .provider(error)
            }
            switch failure.remedy {
            case .askProviderAgain: throw pause(failure)
            case .newHandle:
                try await context.record(.attestationKeyForgotten)
                if hasNewHandle { throw RegistrationFailure(error: failure) }
                hasNewHandle = true
            default: throw RegistrationFailure(error: failure)
            }
        }
    }

    /// The failure of an unavailable provider. It asks for a pause, after which the same handle and nonce may be tried again; if the
    /// challenge would not outlive the pause, the next attempt uses the same handle with a new challenge.
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

    /// The handle to attest with: persisted before its first use, and not yet attested.
    private func handle() async throws(RegistrationFailure) -> String? {
        do throws(SynheartAuthError) {
            if let key = try await context.ledger.load().attestationKey, !key.isUsed { return key.id }
        } catch {
            throw RegistrationFailure(error: error)
        }
        let id: String?
        do throws(AttestationError) {
            id = try await context.makeHandle()
        } catch {
            throw RegistrationFailure(error: .handleNotMade(error))
        }
        if let id { try await context.record(.attestationKeyMade(id: id)) }
        return id
    }
}

extension SynheartAuthError {
    /// Failures other than these cannot be told from a refusal while there is no handle.
    static func handleNotMade(_ error: AttestationError) -> SynheartAuthError {
        let code: AttestationError.Code = [.unsupported, .noAnswer].contains(error.code) ? error.code : .refused
        return .provider(AttestationError(code, reason: error.reason))
    }
}
