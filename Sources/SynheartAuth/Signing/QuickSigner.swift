internal import AuthContract

/// The record and the key that signed last, for as long as the record is the same: a request is then signed without reading
/// anything and without another thread. Storage and key store say whether they can do it.
struct QuickSigner: Sendable {
    let version: RecordVersion
    let record: IdentityRecord
    let sign: KeySigner
}

extension IdentityContext {
    /// What signed last, where the record has not changed since.
    func currentQuickSigner() -> QuickSigner? {
        guard let known = quickSigner.withLock({ $0 }) else { return nil }
        guard configuration.storage.version(recordName) == known.version else {
            quickSigner.withLock { $0 = nil }
            return nil
        }
        return known
    }

    /// Remembers what signs with this record's key. `version` was asked for before the record was read, so that a change in
    /// between is seen as one.
    func rememberQuickSigner(_ record: IdentityRecord, _ alias: KeyAlias, _ version: RecordVersion?) async {
        guard let version else { return }
        let signer = try? await keys { store throws(KeyStoreError) in try store.signer(alias) }
        guard let signer = signer ?? nil else { return }
        quickSigner.withLock { $0 = QuickSigner(version: version, record: record, sign: signer) }
    }
}
