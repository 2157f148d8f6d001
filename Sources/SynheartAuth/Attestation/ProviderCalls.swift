internal import AuthContract

extension IdentityContext {
    /// The limit of each call of the attestation provider.
    static let providerLimit = Duration.seconds(30)

    /// Makes a handle with the attestation provider.
    func makeHandle() async throws(AttestationError) -> String? {
        let provider = attestation
        return try await asked { () async throws(AttestationError) in try await provider.makeHandle() }
    }

    /// Has the attestation provider attest a key.
    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        let provider = attestation
        return try await asked { () async throws(AttestationError) in try await provider.attest(subject) }
    }

    /// An assertion over these 32 bytes.
    ///
    /// - Parameters:
    ///   - hash: The 32 bytes.
    ///   - key: The attested key that asserts; nil: the identity's App Attest key.
    /// - Throws: ``RetryTable/Situation/assertionKeyLost`` if there is no such key, or the provider no longer knows it. The SDK
    ///   then drops the handle.
    func assertion(
        clientDataHash hash: [UInt8], by key: IdentityRecord.AttestationKey? = nil
    ) async throws(SynheartAuthError) -> [UInt8] {
        let record = try await ledger.load()
        guard record.platform == .ios, !configuration.isDevelopment else {
            throw SynheartAuthError(.attestationUnavailable, "this device has no App Attest key to assert with")
        }
        let provider = attestation
        if let owner = record.attestationOwner, let user = provider.handleOwner, owner != user {
            throw SynheartAuthError(
                .attestationUnavailable, "the App Attest key belongs to \(owner), and \(user) cannot assert with it")
        }
        guard let handle = key ?? record.attestationKey, handle.isUsed else { throw .assertionKeyLost() }
        let assertion: [UInt8]
        do throws(AttestationError) {
            assertion = try await asked { () async throws(AttestationError) in
                try await provider.assertion(handle: handle.id, clientDataHash: hash)
            }
        } catch {
            throw try await judged(asserting: error, handle)
        }
        if handle.suspicion != nil { _ = try? await ledger.apply(.assertionKeyTrusted(id: handle.id)) }
        return assertion
    }

    private func asked<Value: Sendable>(
        _ call: @escaping @Sendable () async throws(AttestationError) -> Value
    ) async throws(AttestationError) -> Value {
        do throws(SynheartAuthError) { try HeldLock.operation?.check() } catch {
            throw AttestationError(.unavailable, reason: error.message)
        }
        let answer = await withDeadline(Self.providerLimit, sleeper) { () -> Result<Value, AttestationError> in
            do throws(AttestationError) { return .success(try await call()) } catch { return .failure(error) }
        }
        guard let answer else { throw AttestationError(.noAnswer) }
        return try answer.get()
    }
}

extension SynheartAuthError {
    /// The SDK's error for a failure of the attestation provider.
    static func provider(_ error: AttestationError) -> SynheartAuthError {
        SynheartAuthError(RetryTable.Situation(error.code), error.message, cause: error)
    }

    /// The error of an identity whose record has no attested App Attest key, or whose App Attest key Apple no longer knows.
    static func assertionKeyLost(cause: AttestationError? = nil) -> SynheartAuthError {
        SynheartAuthError(.assertionKeyLost, "the App Attest key is gone", cause: cause)
    }

    /// The error of an identity whose App Attest key is gone, if the service accepts no new one.
    static func rebindRefused(cause: SynheartAuthError) -> SynheartAuthError {
        SynheartAuthError(
            .rebindRefused, "the App Attest key is gone, and the service takes no new one by rotation", cause: cause,
            serverTime: cause.serverTime)
    }
}

extension RetryTable.Situation {
    /// The situation for a provider's failure. A code that is not one of the SDK's own is treated as a refusal.
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
