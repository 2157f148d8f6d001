internal import AuthContract

extension Rotator {
    /// The key that is current on the service.
    struct CurrentKey: Sendable {
        let thumbprint: String?
        let rotatedAt: UnixTime?
        let serverTime: UnixTime?
        /// Whether the service demands that this key rotates.
        var mustRotate = false
        /// The seconds for which the service may still accept this key after the new key has replaced it.
        var overlap: Int64 = 0
    }

    /// The longest overlap that a service allows.
    private static let longestOverlap: Int64 = 3600

    /// The current key according to the service's status; nil if the service refuses both keys.
    ///
    /// The status is requested with the old key, and then with the new key if the old one is refused or lost. If the
    /// service accepts the signature of a key but refuses the request for lack of a valid assertion, the result is that
    /// key. This may be the old key although the new one has replaced it: the service accepts both for a while.
    ///
    /// - Throws: `KEY_INVALIDATED` if the old key is lost and the new one is lost or refused. In that case the identity
    ///   has no key. `ROTATION_FAILED` if the old key is refused and the new one is lost. The refusal may be a mistake,
    ///   so the old key stays.
    func currentKey(
        _ pending: PendingRotation, _ record: IdentityRecord
    ) async throws(SynheartAuthError) -> CurrentKey? {
        var lost: IdentityRecord.KeyReference?
        var isNewKeyLost = false
        for alias in [record.key?.alias, pending.alias].compactMap({ $0 }) {
            do throws(SynheartAuthError) {
                let status = try await status(pending, record, alias)
                return CurrentKey(
                    thumbprint: status.keyThumbprint, rotatedAt: status.keyRotatedAt,
                    serverTime: status.serverTimestamp, mustRotate: status.mustRotate)
            } catch {
                switch error.code {
                case .server(ErrorCode.invalidSignature.rawValue): continue
                case .server(ErrorCode.invalidAssertion.rawValue), .server(ErrorCode.assertionRequired.rawValue):
                    // The service judges an assertion after the signature, so it has accepted the signature of this key.
                    return CurrentKey(
                        thumbprint: record.reference(alias)?.thumbprint, rotatedAt: nil, serverTime: error.serverTime,
                        overlap: Self.longestOverlap)
                case .keyInvalidated:
                    if let key = record.key, key.alias == alias { lost = key } else { isNewKeyLost = true }
                default: throw error
                }
            }
        }
        if let lost { throw try await losing(lost) }
        guard !isNewKeyLost else {
            throw SynheartAuthError(.noKeyAccepted, "the service refuses the old key, and the new one is lost")
        }
        return nil
    }

    /// The status, with an assertion if the service demands one and a key can make it.
    private func status(
        _ pending: PendingRotation, _ record: IdentityRecord, _ alias: KeyAlias
    ) async throws(SynheartAuthError) -> StatusResponse {
        // If the rebind took effect, the service accepts assertions by the new App Attest key alone.
        let asserting: IdentityContext.Asserting =
            if pending.hasOpenRebind, let key = pending.newHandle { .asDemandedBy(key) } else { .asDemanded }
        do throws(SynheartAuthError) {
            return try await context.signedCall(.status, record: record, alias: alias, asserting: asserting).read()
        } catch {
            // Ask again without an assertion. The record keeps no suspicion about the new App Attest key, so the SDK could never
            // conclude that this key is lost, and the attempts would never end.
            guard error.remedy == .rebind || asserting.key != nil && error.code == .attestationFailed else {
                throw error
            }
            return try await context.signedCall(.status, record: record, alias: alias, asserting: .never).read()
        }
    }
}
