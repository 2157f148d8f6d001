internal import AuthContract

extension VerdictEngine.Answer {
    /// Interprets a failure of a key store as an answer about the key. A code that an app defines is `suspicious`,
    /// because the SDK knows no documented retry for it.
    init(_ code: KeyStoreError.Code) {
        self =
            switch code {
            case .invalidated: .final
            case .unavailable, .unsupported, .misconfigured: .temporary
            default: .suspicious
            }
    }

    /// Interprets a failure to assert as an answer about the App Attest key.
    init(asserting code: AttestationError.Code) {
        self =
            switch code {
            case .handleInvalid: .final
            case .unavailable, .noAnswer, .unsupported: .temporary
            default: .suspicious
            }
    }
}

/// The cause of an error about a suspected key. `answer` is the platform's answer, which raised the suspicion or did not yet confirm it.
struct SuspiciousAnswer: Error {
    let answer: any Error
}

extension IdentityContext {
    /// The error to throw for a failed use of a key: `KEY_INVALIDATED` only if the key is lost, or the record does not name it.
    ///
    /// - Parameters:
    ///   - failure: The key store's failure.
    ///   - key: The key; nil if the record names no such key, so that nothing depends on it.
    ///   - isSigning: Whether the key was to sign.
    func judged(
        _ failure: KeyStoreError, _ key: IdentityRecord.KeyReference?, isSigning: Bool = false
    ) async -> SynheartAuthError {
        let answer = VerdictEngine.Answer(failure.code)
        let lost = KeyStoreError(.invalidated, status: failure.status, reason: failure.reason)
        guard answer == .suspicious else { return error(failure) }
        let record: IdentityRecord
        do throws(SynheartAuthError) { record = try await ledger.loadOfAnyOrigin() } catch { return error }
        // Another process replaced the key meanwhile. The caller re-reads the record.
        guard let key, record.names(key) else { return error(lost) }
        let now = run.now
        let suspicion = record.suspicions[key.alias]
        var verdict = await verdict(answer, suspicion, now, key.alias)
        // The key store may have recovered between this answer and the check of its test keys (canaries).
        if verdict == .lost, !isSigning, await isThere(key) { verdict = .suspected }
        switch verdict {
        case .lost: return error(lost)
        case .suspected:
            let kept = suspicion ?? Suspicion(now)
            let error = suspected(
                failure, after: VerdictEngine.remaining(kept, now, seen: ledger.suspicions.seen(kept)),
                isSigning: isSigning)
            if suspicion == nil {
                log.event(.suspicion, .warning, device: record.deviceID, error: error, status: failure.status)
                _ = try? await ledger.apply(.keySuspected(key, kept))
            }
            return error
        default: return error(KeyStoreError(.unavailable, status: failure.status, reason: failure.reason))
        }
    }

    private func isThere(_ key: IdentityRecord.KeyReference) async -> Bool {
        let found = try? await keys(.loadKey) { store throws(KeyStoreError) in try store.load(key.alias) }
        return found?.thumbprint == key.thumbprint
    }

    private func verdict(
        _ answer: VerdictEngine.Answer, _ suspicion: Suspicion?, _ now: ProcessTime, _ alias: KeyAlias
    ) async -> VerdictEngine.Verdict {
        let history = VerdictEngine.history(suspicion, now, seen: ledger.suspicions.seen(suspicion))
        let first = VerdictEngine.judge(answer, history, .notAsked)
        guard first == .askCanaries else { return first }
        let works: Void? = try? await keys(.askCanaries) { store throws(KeyStoreError) in
            try store.checkCanaries(of: alias)
        }
        return VerdictEngine.judge(answer, history, works == nil ? .fail : .work)
    }

    private func suspected(
        _ failure: KeyStoreError, after delay: Duration, isSigning: Bool
    ) -> SynheartAuthError {
        let isEnclave = configuration.keyStore.protection == .secureEnclave
        let situation: RetryTable.Situation =
            isSigning && failure.code != .notFound
            ? .signatureSuspected : isEnclave ? .enclaveKeySuspected : .keySuspected
        return SynheartAuthError(
            situation, "the platform's answer about the key is not believed yet: \(failure)",
            retryAfter: delay, cause: SuspiciousAnswer(answer: failure))
    }

    /// Ends the suspicion about a key that has just signed.
    func trust(_ alias: KeyAlias, _ record: IdentityRecord) async {
        if record.suspicions[alias] != nil { _ = try? await ledger.apply(.keyTrusted(alias)) }
    }

    /// Ends the suspicion about a key that has just signed.
    func trust(_ alias: KeyAlias) async {
        if let record = try? await ledger.load() { await trust(alias, record) }
    }

    /// The error to throw for a failed assertion. Drops the App Attest key if it is lost. App Attest has no canary (a
    /// test key that shows whether the platform works), so this function judges as if the canary worked.
    func judged(
        asserting failure: AttestationError, _ key: IdentityRecord.AttestationKey
    ) async throws(SynheartAuthError) -> SynheartAuthError {
        let now = run.now
        let seen = ledger.suspicions.seen(key.suspicion)
        let history = VerdictEngine.history(key.suspicion, now, seen: seen)
        var verdict = VerdictEngine.judge(.init(asserting: failure.code), history, .notAsked)
        if verdict == .askCanaries { verdict = VerdictEngine.judge(.init(asserting: failure.code), history, .work) }
        switch verdict {
        case .lost:
            try await ledger.apply(.assertionKeyLost(id: key.id))
            return .assertionKeyLost(cause: failure)
        case .suspected:
            let kept = key.suspicion ?? Suspicion(now)
            if key.suspicion == nil { try await ledger.apply(.assertionKeySuspected(id: key.id, kept)) }
            return SynheartAuthError(
                .assertionSuspected, "App Attest failed; the answer is not believed yet",
                retryAfter: VerdictEngine.remaining(kept, now, seen: seen), cause: failure)
        default: return .provider(failure)
        }
    }
}

extension IdentityRecord {
    /// Whether this key is the record's, or one that its journal names.
    func names(_ key: KeyReference) -> Bool { reference(key.alias) == key }

    /// The key of this name; nil if the record names none.
    func reference(_ alias: KeyAlias) -> KeyReference? {
        if let key = self.key, key.alias == alias { return key }
        switch self.journal {
        case .registration(let key, _) where key.alias == alias: return key
        case .rotation(let pending) where pending.alias == alias:
            return pending.thumbprint.map { KeyReference(alias: alias, thumbprint: $0) }
        default: return nil
        }
    }
}
