package import AuthContract
internal import Bytes
internal import Crypto
package import SynheartAuth

/// A record storage in memory, which is lost when the process ends.
package final class VolatileStorage: RecordStorage {
    private let records = Locked<[RecordName: [UInt8]]>([:])
    private let locks = Locked<Set<String>>([])

    /// An empty storage.
    package init() {}

    package func read(_ name: RecordName) -> StorageReading {
        records.withLock { $0[name].map { .found($0) } ?? .absent }
    }

    package func write(_ bytes: [UInt8], to name: RecordName) { records.withLock { $0[name] = bytes } }

    package func remove(_ name: RecordName) { records.withLock { $0[name] = nil } }

    package func setAside(_ bytes: [UInt8], of name: RecordName) {}

    package func lock(_ name: RecordName, for scope: String) -> (any StorageLock)? {
        let key = "\(name) \(scope)"
        guard locks.withLock({ $0.insert(key).inserted }) else { return nil }
        return Held(key: key, locks: locks)
    }

    private struct Held: StorageLock {
        let key: String
        let locks: Locked<Set<String>>

        func release() { locks.withLock { _ = $0.remove(key) } }
    }
}

/// A key store in memory.
package final class VolatileKeyStore: KeyStore {
    private let keys = Locked<[KeyAlias: P256.Signing.PrivateKey]>([:])

    /// An empty key store.
    package init() {}

    package var protection: KeyProtection { .software }

    package func create(_ alias: KeyAlias, challenge: [UInt8]?) -> DevicePublicKey {
        let key = P256.Signing.PrivateKey()
        keys.withLock { $0[alias] = key }
        return DevicePublicKey(key.publicKey)
    }

    package func load(_ alias: KeyAlias) -> DevicePublicKey? {
        keys.withLock { $0[alias] }.map { DevicePublicKey($0.publicKey) }
    }

    package func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        guard let key = keys.withLock({ $0[alias] }) else { throw KeyStoreError(.notFound, reason: "no such key") }
        guard let signature = try? key.signature(for: message) else {
            throw KeyStoreError(.failed, reason: "signing failed")
        }
        return RequestSignature(signature)
    }

    package func delete(_ alias: KeyAlias) { keys.withLock { $0[alias] = nil } }
}
