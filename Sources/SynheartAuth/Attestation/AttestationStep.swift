internal import AuthContract

/// Step 5: has the provider attest, with all its own ways to fail.
struct AttestationStep: Sendable {
    let context: IdentityContext
    let challenge: RegistrationAttempt.LiveChallenge

    /// No call of a provider is waited for longer.
    static let limit = Duration.seconds(30)

    func run(
        _ subject: (_ handle: String?) -> AttestationSubject
    ) async throws(RegistrationFailure) -> AttestationEvidence {
        var forgotten = false
        var attempt = 0
        while true {
            let handle = try await handle()
            let failure: AttestationError
            do throws(AttestationError) {
                return try await attest(subject(handle))
            } catch {
                failure = error
            }
            switch failure.code {
            case .unsupported:
                throw RegistrationFailure(
                    error: SynheartAuthError(.attestationUnavailable, failure.reason, cause: failure))
            case .refused:
                throw RegistrationFailure(error: refused(failure), retry: .once)
            case .noAnswer: throw RegistrationFailure(error: noAnswer(failure))
            case .handleInvalid:
                try await context.record(.attestationKeyForgotten)
                if forgotten { throw RegistrationFailure(error: refused(failure)) }
                forgotten = true
            case .unavailable:
                try await waitWithinLife(after: attempt, failure)
                attempt += 1
            }
        }
    }

    /// The same handle and nonce may be tried again while the challenge lives; then a new attempt keeps the handle.
    private func waitWithinLife(after attempt: Int, _ failure: AttestationError) async throws(RegistrationFailure) {
        let error = SynheartAuthError(
            .attestationFailed, "the attestation provider cannot be asked now", recovery: .retry, isRetryable: true,
            cause: failure)
        guard let delay = RetryPolicy.registration.delay(after: attempt, random: context.random) else {
            throw RegistrationFailure(error: error)
        }
        guard context.clock.continuous + delay < challenge.goodUntil else {
            throw RegistrationFailure(error: error, retry: .withBackoff)
        }
        do throws(SynheartAuthError) {
            try await context.sleeper.pause(delay, .retry)
        } catch {
            throw RegistrationFailure(error: error)
        }
    }

    /// The handle to attest with: persisted before it is used, and never one that was used up.
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
        case .failure(let error) where error.code == .unsupported:
            throw RegistrationFailure(error: SynheartAuthError(.attestationUnavailable, error.reason, cause: error))
        case .failure(let error) where error.code == .noAnswer: throw RegistrationFailure(error: noAnswer(error))
        case .failure(let error): throw RegistrationFailure(error: refused(error), retry: .once)
        case nil: throw RegistrationFailure(error: noAnswer(AttestationError(.noAnswer)))
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

    private func noAnswer(_ error: AttestationError) -> SynheartAuthError {
        SynheartAuthError(
            .attestationFailed, "the attestation provider did not answer in time", recovery: .retry, isRetryable: true,
            cause: error)
    }

    private func refused(_ error: AttestationError) -> SynheartAuthError {
        SynheartAuthError(.attestationFailed, "the attestation provider refused", cause: error)
    }
}
