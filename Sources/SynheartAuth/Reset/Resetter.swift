internal import AuthContract

/// Gives up an identity: tells the service if it can, deletes the keys, removes the record. The caller holds the operation lock.
struct Resetter: Sendable {
    let context: IdentityContext

    /// The longest wait for the service.
    static let limit = Duration.seconds(3)

    func reset(_ reason: ResetReason) async throws(SynheartAuthError) {
        let record: IdentityRecord
        do throws(SynheartAuthError) {
            record = try await context.ledger.loadOfAnyOrigin()
        } catch {
            // A record that cannot be decoded names no device, so delete everything. A record that cannot be read now may name
            // one, so throw.
            guard error.cause is UndecodableRecord else { throw error }
            return try await deleteEverything()
        }
        guard record != IdentityRecord(appID: context.appID) else { return }
        let deviceID = record.deviceID
        let begun = try await begin(record, reason)
        try await finish(begun)
        // The record is unchanged for one of two reasons. If the disk was full, `begin` did not announce the change of state, so
        // announce it now. If the reset had begun before this call, the state does not change, and `announce` does nothing.
        if begun == record { try context.ledger.announce(.resetStarted(reason), of: record) }
        context.log.event(.identityReset, device: deviceID)
    }

    /// Records that the reset has begun. If the disk is full, the reset continues without this mark, because a reset needs no space
    /// and frees some. If it is then interrupted after the key was deleted, the record still names the key, and the next launch
    /// finds that the key is gone.
    private func begin(
        _ record: IdentityRecord, _ reason: ResetReason
    ) async throws(SynheartAuthError) -> IdentityRecord {
        do throws(SynheartAuthError) {
            return try await context.ledger.apply(.resetStarted(reason))
        } catch {
            guard (error.cause as? StorageError)?.isFull == true else { throw error }
            return record
        }
    }

    /// Runs a reset, or the rest of an interrupted one.
    func finish(_ record: IdentityRecord) async throws(SynheartAuthError) {
        await tellService(record)
        try await deleteEverything()
    }

    private func deleteEverything() async throws(SynheartAuthError) {
        for alias in KeyAlias.both(context.appID) { try await context.deleteKey(alias) }
        try await context.ledger.clear()
    }

    /// Tells the service that the device gives up its identity, best effort. 204, `NOT_REGISTERED` and `DEVICE_REVOKED`
    /// mean that the service knows. If the service cannot be reached, it keeps the device's row and accepts the key until
    /// an operator ends the device's identity or the key becomes too old.
    private func tellService(_ record: IdentityRecord) async {
        guard record.deviceID != nil, let key = record.key,
            context.ledger.isOurs(record)
        else { return }
        let context = context
        _ = await withDeadline(Self.limit, context.sleeper) {
            for alias in [key.alias, KeyAlias.other(than: key.alias, of: context.appID)] {
                do throws(SynheartAuthError) {
                    _ = try await context.signedCall(.device, record: record, alias: alias, deadline: Self.limit)
                    return
                } catch {
                    // After an unanswered rotation the service may accept only the other key.
                    switch error.code {
                    case .server(ErrorCode.invalidSignature.rawValue), .keyInvalidated, .keystoreError,
                        .secureEnclaveError, .signingFailed:
                        continue
                    default: return
                    }
                }
            }
        }
    }
}
