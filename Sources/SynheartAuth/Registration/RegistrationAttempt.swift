internal import AuthContract
internal import Foundation

/// One pass through the eight steps of a registration (RFC-AUTH-MOBILE-0001 section 7), with its own challenge.
struct RegistrationAttempt: Sendable {
    let context: IdentityContext

    struct SigningKey: Sendable {
        let reference: IdentityRecord.KeyReference
        let publicKey: DevicePublicKey
        /// Whether the service may have registered the key by a request whose answer was lost.
        let mayBeKnown: Bool
        /// Whether the hardware attestation of the key names the challenge of an earlier attempt, which is spent.
        let isAttestationSpent: Bool
    }

    /// A key, and the challenge that it is attested for.
    struct Candidate: Sendable {
        let challenge: UnexpiredChallenge
        let key: SigningKey
        /// The number of times that the attestation provider was unavailable for this key and challenge.
        var refusals = 0
    }

    func run() async throws(RegistrationFailure) -> Registration {
        let challenge = try await fetchChallenge()  // steps 1 and 2
        return try await run(Candidate(challenge: challenge, key: try await makeKey(challenge)))  // step 3
    }

    /// Runs the rest of an attempt, from step 4.
    func run(_ candidate: Candidate) async throws(RegistrationFailure) -> Registration {
        let (challenge, key) = (candidate.challenge, candidate.key)
        let nonce = BindingNonce(challenge: challenge.bytes, publicKeyText: key.publicKey.base64)  // step 4
        let evidence = try await attest(candidate, nonce)  // step 5
        let (response, time) = try await send(evidence, key, challenge, nonce)  // steps 6 and 7
        return try await persist(response, at: time)  // step 8
    }

    private func fetchChallenge() async throws(RegistrationFailure) -> UnexpiredChallenge {
        let challenge: UnexpiredChallenge
        do throws(SynheartAuthError) {
            challenge = try await context.challenge(for: .register)
        } catch {
            throw RegistrationFailure(error: error)
        }
        try await context.record(.challengeReceived(authOrigin: context.configuration.origin.text))
        return challenge
    }

    private func makeKey(_ challenge: UnexpiredChallenge) async throws(RegistrationFailure) -> SigningKey {
        if let key = try await keyOfEarlierAttempt() {
            try await context.record(.keyReady(key.reference, isReused: true))
            return key
        }
        let alias = KeyAlias.primary(context.appID)
        let publicKey: DevicePublicKey
        do throws(KeyStoreError) {
            publicKey = try await context.keys(.createKey) { store throws(KeyStoreError) in
                try store.create(alias, challenge: challenge.bytes)
            }
        } catch {
            throw RegistrationFailure(error: creationError(error))
        }
        let reference = IdentityRecord.KeyReference(alias: alias, thumbprint: publicKey.thumbprint)
        try await context.record(.keyReady(reference, isReused: false))
        return SigningKey(reference: reference, publicKey: publicKey, mayBeKnown: false, isAttestationSpent: false)
    }

    // The key of an earlier attempt; nil if it cannot be used again. If the service has already registered the key, it
    // returns the same device id for the key. If the key store attests keys, a key that was never sent is not used again,
    // because its attestation names the earlier challenge.
    private func keyOfEarlierAttempt() async throws(RegistrationFailure) -> SigningKey? {
        do throws(SynheartAuthError) {
            guard case .registration(let reference, let isSent) = try await context.ledger.load().journal,
                isSent || !context.configuration.keyStore.attestsKeys,
                let publicKey = try await context.publicKey(reference)
            else { return nil }
            return SigningKey(
                reference: reference, publicKey: publicKey, mayBeKnown: isSent,
                isAttestationSpent: context.configuration.keyStore.attestsKeys)
        } catch {
            throw RegistrationFailure(error: error)
        }
    }

    private func creationError(_ error: KeyStoreError) -> SynheartAuthError {
        // A key that was never created cannot be invalidated.
        let code: KeyStoreError.Code = error.isKeyLost ? .failed : error.code
        return context.error(KeyStoreError(code, status: error.status, reason: error.reason))
    }

    private func attest(
        _ candidate: Candidate, _ nonce: BindingNonce
    ) async throws(RegistrationFailure) -> AttestationEvidence {
        try await AttestationStep(context: context, candidate: candidate).run { handle in
            AttestationSubject(
                appID: context.appID, challenge: candidate.challenge.bytes, bindingNonce: nonce,
                publicKey: candidate.key.publicKey, alias: candidate.key.reference.alias, handle: handle)
        }
    }

    /// Sends the registration. Returns the answer, and the service's time if the answer names it.
    private func send(
        _ evidence: AttestationEvidence, _ key: SigningKey, _ challenge: UnexpiredChallenge, _ nonce: BindingNonce
    ) async throws(RegistrationFailure) -> (RegisterResponse, UnixTime?) {
        let platform = context.attestation.platform
        // The service refuses a chain that names another challenge. The rest of the evidence may be enough.
        let chain = key.isAttestationSpent ? nil : evidence.keyAttestation
        guard evidence.proof != nil || chain != nil else {
            throw refusal(SynheartAuthError(.attestationFailed, "there is no evidence for this challenge"), key)
        }
        let keyProof: RequestSignature
        do throws(KeyStoreError) {
            let message = KeyProof.registration(nonce)
            keyProof = try await context.keys(.sign) { store throws(KeyStoreError) in
                try store.sign(message, with: key.reference.alias)
            }
        } catch {
            let error = await context.judged(error, key.reference, isSigning: true)
            // A lost key is dropped, although the service may know it, because no later attempt could use it.
            throw RegistrationFailure(error: error, forgetsKey: error.code == .keyInvalidated)
        }
        await context.trust(key.reference.alias)
        guard context.clock.continuous < challenge.goodUntil else {
            throw RegistrationFailure(
                error: SynheartAuthError(.challengeExpired, "the challenge expired on the way"))
        }
        let request = RegisterRequest(
            appID: context.appID, publicKeyText: key.publicKey.base64, challenge: challenge.bytes, platform: platform,
            proof: evidence.proof, keyProof: keyProof.der, keyAttestation: chain,
            deviceLocalID: context.configuration.deviceLocalID?.uuidString.lowercased())
        try await context.record(.registrationSending(platform))
        do throws(SynheartAuthError) {
            let answer = try await context.call(.register, body: request.bytes)
            return (try answer.read(RegisterResponse.self), answer.serverTime)
        } catch {
            throw refusal(error, key)
        }
    }

    private func refusal(_ error: SynheartAuthError, _ key: SigningKey) -> RegistrationFailure {
        guard error.code == .attestationFailed else { return RegistrationFailure(error: error) }
        if key.isAttestationSpent { return .keyAttestationSpent(error) }
        if key.mayBeKnown {
            // An earlier request may have registered this key. Only the app may abandon the key, by a reset.
            return RegistrationFailure(
                error: SynheartAuthError(
                    .knownKeyRefused, error.message, cause: error, serverTime: error.serverTime))
        }
        return RegistrationFailure(error: error, forgetsKey: true)
    }

    /// Records the service's answer. Throws if the answer is `rejected`.
    ///
    /// - Parameter time: The service's time; nil if the answer does not name it. In that case the time is computed from
    ///   the device's clock and the stored clock offset, and may be wrong.
    private func persist(
        _ response: RegisterResponse, at time: UnixTime?
    ) async throws(RegistrationFailure) -> Registration {
        let deviceID = response.deviceID
        let time = if let time { time } else { try await now() }
        switch response.status {
        case .registered:
            try await context.record(.registered(deviceID, at: time))
            return Registration(status: .registered, deviceId: deviceID.text)
        case .pending:
            try await context.record(.pending(deviceID, at: time))
            return Registration(status: .pending, deviceId: deviceID.text)
        case .rejected:
            throw RegistrationFailure(
                error: SynheartAuthError(.attestationFailed, "the service rejected this device"))
        }
    }

    private func now() async throws(RegistrationFailure) -> UnixTime {
        do throws(SynheartAuthError) {
            return try await context.ledger.load().clockOffset.serverTime(atLocal: context.clock.wallMilliseconds)
        } catch {
            throw RegistrationFailure(error: error)
        }
    }
}
