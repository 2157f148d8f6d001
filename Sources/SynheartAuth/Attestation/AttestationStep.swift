internal import AuthContract

/// Step 5 of a registration: gets evidence from the provider, and handles each of its failures.
struct AttestationStep: Sendable {
    let context: IdentityContext
    let challenge: RegistrationAttempt.LiveChallenge

    /// The limit of each call of a provider.
    static let limit = Duration.seconds(30)

    func run(
        _ subject: (_ handle: String?) -> AttestationSubject
    ) async throws(RegistrationFailure) -> AttestationEvidence {
        var hasNewHandle = false
        var attempt = 0
        while true {
            let handle = try await handle()
            let failure: SynheartAuthError
            do throws(AttestationError) {
                return try await attest(subject(handle))
            } catch {
                failure = self.failure(error)
            }
            switch failure.remedy {
            case .askProviderAgain:
                try await waitWithinLife(after: attempt, failure)
                attempt += 1
            case .newHandle:
                try await context.record(.attestationKeyForgotten)
                if hasNewHandle { throw RegistrationFailure(error: failure) }
                hasNewHandle = true
            default: throw RegistrationFailure(error: failure)
            }
        }
    }

    /// Waits before the next call with the same handle and nonce. Fails if the challenge would not outlive the wait; the next
    /// attempt then uses the same handle with a new challenge.
    private func waitWithinLife(after attempt: Int, _ error: SynheartAuthError) async throws(RegistrationFailure) {
        guard let delay = RetryPolicy.registration.delay(after: attempt, random: context.random) else {
            throw RegistrationFailure(error: error)
        }
        guard context.clock.continuous + delay < challenge.goodUntil else {
            throw RegistrationFailure(error: error, remedy: .newChallenge)
        }
        do throws(SynheartAuthError) {
            try await context.sleeper.pause(delay, .retry)
        } catch {
            throw RegistrationFailure(error: error)
        }
    }

    /// The handle to attest with: persisted before its first use, and not yet attested.
    private func handle() async throws(RegistrationFailure) -> String? {
        do throws(SynheartAuthError) {
            if let key = try await context.ledger.load().attestationKey, !key.isUsed { return key.id }
        } catch {
            throw RegistrationFailure(error: error)
        }
        let provider = context.attestation
        let made: Result<String?, AttestationError>? = await withDeadline(Self.limit, context.sleeper) {
            do throws(AttestationError) { return .success(try await provider.makeHandle()) } catch {
                return .failure(error)
            }
        }
        switch made {
        case .success(let id?):
            try await context.record(.attestationKeyMade(id: id))
            return id
        case .success(nil): return nil
        case .failure(let failure):
            // Other failures cannot be told from a refusal while there is no handle.
            let code: AttestationError.Code =
                [.unsupported, .noAnswer].contains(failure.code) ? failure.code : .refused
            throw RegistrationFailure(error: self.failure(AttestationError(code, reason: failure.reason)))
        case nil: throw RegistrationFailure(error: failure(AttestationError(.noAnswer)))
        }
    }

    private func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        let provider = context.attestation
        let evidence: Result<AttestationEvidence, AttestationError>? = await withDeadline(
            Self.limit, context.sleeper
        ) {
            do throws(AttestationError) { return .success(try await provider.attest(subject)) } catch {
                return .failure(error)
            }
        }
        guard let evidence else { throw AttestationError(.noAnswer) }
        return try evidence.get()
    }

    private func failure(_ error: AttestationError) -> SynheartAuthError {
        SynheartAuthError(RetryTable.Situation(error.code), error.message, cause: error)
    }
}

extension RetryTable.Situation {
    /// The situation that a provider's failure means. A code of the host's own counts as a refusal.
    init(_ code: AttestationError.Code) {
        self =
            switch code {
            case .unsupported: .attestationUnsupported
            case .unavailable: .providerUnavailable
            case .handleInvalid: .handleInvalid
            case .noAnswer: .providerSilent
            default: .attestationRefused
            }
    }
}

extension AttestationError {
    /// The message for the developer.
    fileprivate var message: String {
        switch code {
        case .unsupported: reason
        case .unavailable: "the attestation provider cannot be asked now"
        case .noAnswer: "the attestation provider did not answer in time"
        default: "the attestation provider refused"
        }
    }
}
