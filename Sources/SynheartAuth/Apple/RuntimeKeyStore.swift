#if canImport(Security) && canImport(CryptoKit)
    internal import AuthContract
    internal import CryptoKit
    internal import Foundation
    internal import Security

    /// The runtime's keys. A key that a deployed SDK made is used where it lies: a Secure Enclave key's representation as a Keychain
    /// item of service `ai.synheart.auth.fficrypto`, its account the device id.
    struct RuntimeKeyStore: KeyStore {
        private let base: SecureEnclaveKeyStore
        private let deployed: KeychainSecrets

        static let service = "ai.synheart.auth.fficrypto"
        /// Where deployed SDKs kept the id of their App Attest key.
        static let attestService = "ai.synheart.auth.fficrypto.appattest"
        private static let prefix = "synheart_device_"

        init(pause: @escaping @Sendable () -> Void = KeychainCanary.pause) {
            base = SecureEnclaveKeyStore(accessGroup: nil, pause: pause)
            deployed = KeychainSecrets(pause: pause)
        }

        var protection: KeyProtection { .secureEnclave }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            try base.create(alias, challenge: challenge)
        }

        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
            try use(alias) { key throws(KeyStoreError) in
                do throws(ContractError) { return try DevicePublicKey(Array(key.publicKey.x963Representation)) } catch {
                    throw KeyStoreError(.failed, reason: "not a P-256 key")
                }
            } orBase: { () throws(KeyStoreError) in
                try base.load(alias)
            }
        }

        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            let signature = try use(alias) { key throws(KeyStoreError) in
                do {
                    return try RequestSignature(der: Array(key.signature(for: Data(message)).derRepresentation))
                } catch {
                    throw KeyStoreError(.failed, reason: "the Secure Enclave did not sign")
                }
            } orBase: { () throws(KeyStoreError) in
                do throws(KeyStoreError) { return try base.sign(message, with: alias) } catch {
                    guard error.code == .notFound else { throw error }
                    return nil
                }
            }
            guard let signature else { throw KeyStoreError(.notFound, reason: "no such key") }
            return signature
        }

        func delete(_ alias: KeyAlias) throws(KeyStoreError) {
            try base.delete(alias)
            do throws(StorageError) {
                for service in [Self.service, Self.attestService] {
                    try deployed.remove(service: service, key: Self.deviceID(alias))
                }
            } catch {
                throw AppleKeychainStatus.keyStoreError(OSStatus(clamping: error.status ?? 0))
            }
        }

        /// Uses the deployed key, or the base's. Looks are cheap; only when both found nothing is that confirmed for the deployed key,
        /// as the base has confirmed its own.
        private func use<Value>(
            _ alias: KeyAlias, _ body: (SecureEnclave.P256.Signing.PrivateKey) throws(KeyStoreError) -> Value,
            orBase: () throws(KeyStoreError) -> Value?
        ) throws(KeyStoreError) -> Value? {
            let id = Self.deviceID(alias)
            if let key = try Self.key(deployed.look(service: Self.service, key: id)) { return try body(key) }
            if let value = try orBase() { return value }
            return try Self.key(deployed.read(service: Self.service, key: id)).map(body)
        }

        private static func key(
            _ reading: StorageReading
        ) throws(KeyStoreError) -> SecureEnclave.P256.Signing.PrivateKey? {
            switch reading {
            case .absent: return nil
            case .unavailable(let error): throw KeyStoreError(.unavailable, status: error.status, reason: error.reason)
            case .found(let bytes):
                do {
                    return try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: Data(bytes))
                } catch {
                    throw KeyStoreError(.invalidated, reason: "a key of another device")
                }
            }
        }

        private static func deviceID(_ alias: KeyAlias) -> String { String(alias.text.dropFirst(prefix.count)) }
    }
#endif
