internal import AuthContract

extension Rotator {
    /// The new key, and its signature that proves possession.
    struct NewKey: Sendable {
        let publicKey: DevicePublicKey
        let proof: RequestSignature
    }

    /// The new key. If a copy of the rotation request with an earlier new key may have been sent, this is that key, which
    /// the journal names.
    ///
    /// - Throws: `ROTATION_FAILED` if that key is lost while a sent copy may still take effect.
    func makeKey(for deviceID: DeviceID, challenge: [UInt8]?) async throws(SynheartAuthError) -> NewKey {
        let pending = try await pending()
        if pending.thumbprint != nil {
            if let key = try await earlierKey(pending, deviceID) { return key }
            try await forgetKey()
        }
        do throws(KeyStoreError) {
            let key = try await context.keys(.createKey) { store throws(KeyStoreError) in
                try store.create(pending.alias, challenge: challenge)
            }
            return try await prove(key, pending.alias, deviceID)
        } catch {
            // A key that never signed is not treated as lost.
            let code: KeyStoreError.Code = error.isKeyLost ? .failed : error.code
            throw context.error(KeyStoreError(code, status: error.status, reason: error.reason))
        }
    }

    /// The key that the journal names; nil if it is gone, or can no longer sign.
    private func earlierKey(
        _ pending: PendingRotation, _ deviceID: DeviceID
    ) async throws(SynheartAuthError) -> NewKey? {
        let reference = pending.thumbprint.map { IdentityRecord.KeyReference(alias: pending.alias, thumbprint: $0) }
        guard let reference, let key = try await context.publicKey(reference) else { return nil }
        do throws(KeyStoreError) {
            return try await prove(key, pending.alias, deviceID)
        } catch {
            let error = await context.judged(error, reference, isSigning: true)
            if error.code == .keyInvalidated { return nil }
            throw error
        }
    }

    private func prove(
        _ key: DevicePublicKey, _ alias: KeyAlias, _ deviceID: DeviceID
    ) async throws(KeyStoreError) -> NewKey {
        let message = KeyProof.rotation(deviceID: deviceID, newPublicKeyText: key.base64)
        let proof = try await context.keys(.sign) { store throws(KeyStoreError) in
            try store.sign(message, with: alias)
        }
        await context.trust(alias)
        return NewKey(publicKey: key, proof: proof)
    }
}
