internal import AuthContract

/// The record and the key that signed last, for as long as the record is the same: a request is then signed without reading
/// anything and without another thread. Storage and key store say whether they can do it.
final class QuickSigner: Sendable {
    private let known: KnownVersion
    let record: IdentityRecord
    let sign: KeySigner

    init(_ known: KnownVersion, _ record: IdentityRecord, _ sign: @escaping KeySigner) {
        self.known = known
        self.record = record
        self.sign = sign
    }

    var isCurrent: Bool { known.versions() == known.version }
}

/// A record's version at some moment.
struct KnownVersion: Sendable {
    let version: RecordVersion
    let versions: VersionProbe
}

extension IdentityContext {
    /// What signed last, where the record has not changed since.
    func currentQuickSigner() -> QuickSigner? {
        guard let signer = quickSigner.withLock({ $0 }) else { return nil }
        guard signer.isCurrent else {
            quickSigner.withLock { $0 = nil }
            return nil
        }
        return signer
    }

    /// The record's version now, where that can be told.
    func knownVersion() -> KnownVersion? {
        guard let versions = configuration.storage.versions(of: recordName), let version = versions() else {
            return nil
        }
        return KnownVersion(version: version, versions: versions)
    }

    /// Remembers what signs with this record's key. `known` is of before the record was read, so that a change in between is
    /// seen as one.
    func rememberQuickSigner(_ record: IdentityRecord, _ alias: KeyAlias, _ known: KnownVersion?) async {
        guard let known else { return }
        let signer = try? await keys(.loadKey) { store throws(KeyStoreError) in try store.signer(alias) }
        guard let signer = signer ?? nil else { return }
        quickSigner.withLock { $0 = QuickSigner(known, record, signer) }
    }
}
