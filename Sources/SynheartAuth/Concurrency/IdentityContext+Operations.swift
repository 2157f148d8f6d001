extension IdentityContext {
    /// The error to throw for a refusal of this record's identity. If a reset has ended that identity meanwhile, the returned
    /// error does not make the app give up the present identity.
    func current(_ error: SynheartAuthError, of record: IdentityRecord) async -> SynheartAuthError {
        guard error.recovery == .reset, let now = try? await ledger.load(), now.deviceID != record.deviceID else {
            return error
        }
        return .resetMeanwhile
    }

    /// Runs `body` while no other process and no other task operates on this identity.
    func exclusively<Value: Sendable>(
        _ body: () async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        try checkKeyStore()
        let lock = try await ledger.lock(.operation)
        defer { lock.release() }
        return try await HeldLock.$operation.withValue(lock) { () async -> Result<Value, SynheartAuthError> in
            do throws(SynheartAuthError) { return .success(try await body()) } catch { return .failure(error) }
        }.get()
    }
}
