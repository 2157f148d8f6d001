internal import AuthContract

/// The last used record, cached while it does not change. If the storage has a probe of the record's version, a request is signed without
/// reading the record. If the key store also has a signer that does not block, no other thread is needed.
final class CachedSigner: Sendable {
    private let known: KnownVersion
    let record: IdentityRecord
    /// Signs without blocking; nil if the key store has no such signer, as for keys in hardware, or was not asked for one yet.
    let sign: KeySigner?
    private let hasAsked: Bool

    init(_ known: KnownVersion, _ record: IdentityRecord, _ sign: KeySigner? = nil, hasAsked: Bool = false) {
        self.known = known
        self.record = record
        self.sign = sign
        self.hasAsked = hasAsked
    }

    var isCurrent: Bool { known.versions() == known.version }

    /// This record with the key store's signer; nil if the key store was already asked.
    func asking(_ signer: () async -> KeySigner?) async -> CachedSigner? {
        hasAsked ? nil : CachedSigner(known, record, await signer(), hasAsked: true)
    }
}

/// A record's version, and the probe that reads the current one.
struct KnownVersion: Sendable {
    let version: RecordVersion
    let versions: VersionProbe
}

extension IdentityContext {
    /// The cached signer; nil if there is none, or if the stored record has changed since.
    func currentQuickSigner() -> CachedSigner? {
        guard let signer = quickSigner.withLock({ $0 }) else { return nil }
        guard signer.isCurrent else {
            quickSigner.withLock { $0 = nil }
            return nil
        }
        return signer
    }

    /// The record to sign with. Caches the record if its identity may sign.
    func signingRecord() async throws(SynheartAuthError) -> IdentityRecord {
        if let quick = currentQuickSigner() { return quick.record }
        // Read the version before the record, so that a change in between invalidates the cache.
        let known = knownVersion()
        let record = try await ledger.load()
        if let known, record.identity == .active, record.state != .keyInvalid {
            quickSigner.withLock { $0 = CachedSigner(known, record) }
        }
        return record
    }

    /// The record's current version; nil if the storage cannot tell.
    private func knownVersion() -> KnownVersion? {
        guard let versions = configuration.storage.versions(of: recordName), let version = versions() else {
            return nil
        }
        return KnownVersion(version: version, versions: versions)
    }

    /// Asks the key store once for a signer of the cached record's key.
    func rememberSigner(of alias: KeyAlias) async {
        guard let quick = currentQuickSigner(), quick.record.key?.alias == alias else { return }
        let signer = await quick.asking {
            try? await keys(.loadKey) { store throws(KeyStoreError) in try store.signer(alias) }
        }
        guard let signer else { return }
        quickSigner.withLock { if $0 === quick { $0 = signer } }
    }
}
