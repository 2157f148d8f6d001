public import AuthContract
internal import Crypto

internal import struct Foundation.Data

/// Keys in files, for desktops and servers without a hardware key store. Every reader of a file can copy its key.
///
/// A release build uses it only if `Configuration.keyStore` names it. There is no fallback to it. In debug builds on Linux it is
/// the default, in `$XDG_STATE_HOME/synheart-auth/keys`, else in `$HOME/.local/state/synheart-auth/keys`.
public struct SoftwareKeyStore: KeyStore {
    private let directory: PrivateDirectory

    /// Keys in this directory. The first key creates it, with mode 0700.
    public init(directory: String) { self.directory = PrivateDirectory(path: directory) }

    /// The directory, as given.
    public var path: String { directory.path }

    /// `software`.
    public var protection: KeyProtection { .software }

    /// Makes a key and writes it to a file.
    public func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        let key = P256.Signing.PrivateKey()
        do throws(PrivateDirectory.Failure) {
            try directory.write(Array(key.rawRepresentation), to: Self.file(alias))
        } catch {
            throw failure(error)
        }
        return DevicePublicKey(key.publicKey)
    }

    /// The public half of the key in the file.
    public func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        try key(alias).map { DevicePublicKey($0.publicKey) }
    }

    /// Signs with the key in the file.
    public func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        guard let key = try key(alias) else { throw Self.absent }
        return try Self.sign(message, key)
    }

    /// A signer with the key in memory, valid while the file does not change.
    public func signer(_ alias: KeyAlias) throws(KeyStoreError) -> KeySigner? {
        let versions = directory.versions(of: Self.file(alias))
        guard let version = versions(), let key = try key(alias) else { return nil }
        return KeySigner { message throws(KeyStoreError) in
            guard versions() == version else { throw Self.absent }
            return try Self.sign(message, key)
        }
    }

    private static let absent = KeyStoreError(.notFound, reason: "no such key")

    private static func sign(
        _ message: [UInt8], _ key: P256.Signing.PrivateKey
    ) throws(KeyStoreError) -> RequestSignature {
        guard let signature = try? key.signature(for: message.withUnsafeBytes(SHA256.hash)) else {
            throw KeyStoreError(.failed, reason: "signing failed")
        }
        return RequestSignature(signature)
    }

    /// Removes the file.
    public func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        do throws(PrivateDirectory.Failure) {
            try directory.remove(Self.file(alias))
        } catch {
            throw failure(error)
        }
    }

    /// Throws unless a canary file can be written and read back.
    public func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) {
        do throws(PrivateDirectory.Failure) { try directory.check() } catch {
            throw failure(error)
        }
    }

    private func key(_ alias: KeyAlias) throws(KeyStoreError) -> P256.Signing.PrivateKey? {
        let bytes: [UInt8]?
        do throws(PrivateDirectory.Failure) {
            bytes = try directory.read(Self.file(alias))
        } catch {
            throw failure(error)
        }
        guard let bytes else { return nil }
        guard let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes) else {
            throw KeyStoreError(.failed, reason: "the key file is damaged")
        }
        return key
    }

    private static func file(_ alias: KeyAlias) -> String { "\(RecordName(hashing: alias.text).text).key" }

    /// Always `unavailable`: a file that cannot be read does not prove that its key is lost.
    private func failure(_ failure: PrivateDirectory.Failure) -> KeyStoreError {
        let reason = failure.storageError(in: directory.path).reason
        return KeyStoreError(.unavailable, status: Int(failure.number), reason: reason)
    }
}

/// The key store of a platform without hardware, until the configuration names one. Every call throws `unsupported`,
/// because `notFound` would end an identity whose key is in a store that the configuration does not name.
struct NoKeyStore: KeyStore {
    let protection = KeyProtection.hostKeystore

    private static let failure = KeyStoreError(
        .unsupported, reason: "no key store: name one in Configuration.keyStore")

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey { throw Self.failure }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { throw Self.failure }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature { throw Self.failure }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) { throw Self.failure }

    func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) { throw Self.failure }
}
