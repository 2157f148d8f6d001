internal import AuthContract

/// The last record and key that signed, cached while the record does not change. A request is then signed without reading the
/// record and without another thread, if storage and key store support it.
final class QuickSigner: Sendable {
    private let known: KnownVersion
    let record: IdentityRecord
    let sign: KeySigner

    init(_ known: KnownVersion, _ record: IdentityRecord, _ sign: KeySigner) {
        self.known = known
        self.record = record
        self.sign = sign
    }

    var isCurrent: Bool { known.versions() == known.version }
}

/// A record's version, and the probe that reads the current one.
struct KnownVersion: Sendable {
    let version: RecordVersion
    let versions: VersionProbe
}

extension IdentityContext {
    /// The cached signer, if the record has not changed.
    func currentQuickSigner() -> QuickSigner? {
        guard let signer = quickSigner.withLock({ $0 }) else { return nil }
        guard signer.isCurrent else {
            quickSigner.withLock { $0 = nil }
            return nil
        }
        return signer
    }

    /// The record's current version; nil if the storage cannot tell.
    func knownVersion() -> KnownVersion? {
        guard let versions = configuration.storage.versions(of: recordName), let version = versions() else {
            return nil
        }
        return KnownVersion(version: version, versions: versions)
    }

    /// Caches the signer of a record's key.
    ///
    /// - Parameter known: The version before the record was read, so that a change in between invalidates the cache.
    func rememberQuickSigner(_ record: IdentityRecord, _ alias: KeyAlias, _ known: KnownVersion?) async {
        guard let known else { return }
        let signer = try? await keys(.loadKey) { store throws(KeyStoreError) in try store.signer(alias) }
        guard let signer = signer ?? nil else { return }
        quickSigner.withLock { $0 = QuickSigner(known, record, signer) }
    }
}
