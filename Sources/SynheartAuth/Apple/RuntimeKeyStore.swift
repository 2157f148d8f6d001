#if canImport(Security) && canImport(CryptoKit)
    internal import AuthContract
    internal import CryptoKit
    internal import Foundation
    internal import Security

    /// The keys of Synheart Core's runtime. A key that an earlier SDK made on this device is preferred. That SDK stored the
    /// representation of its Secure Enclave key as a Keychain item of service `ai.synheart.auth.fficrypto`, with the device id as
    /// the account.
    struct RuntimeKeyStore: KeyStore {
        private let base: SecureEnclaveKeyStore
        private let deployed: KeychainSecrets
        private let confirmed: ConfirmedLook

        static let service = "ai.synheart.auth.fficrypto"
        /// The service under which the earlier SDK stored the id of its App Attest key.
        static let attestService = "ai.synheart.auth.fficrypto.appattest"
        private static let prefix = "synheart_device_"

        init(pause: @escaping @Sendable () -> Void = ConfirmedLook.pause) {
            base = SecureEnclaveKeyStore(accessGroup: nil)
            deployed = KeychainSecrets(pause: pause)
            confirmed = ConfirmedLook(pause: pause)
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
                let signature: P256.Signing.ECDSASignature
                do { signature = try key.signature(for: Data(message)) } catch {
                    throw AppleKeychainStatus.keyStoreError(error)
                }
                do throws(ContractError) { return try RequestSignature(der: Array(signature.derRepresentation)) } catch
                {
                    throw KeyStoreError(.failed, reason: "not a signature")
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

        /// Uses the earlier SDK's key, or else the key of `base`. If there is neither, checks by the Keychain's canary, a
        /// test item, that the Keychain works, and looks again after a pause before it returns nil.
        private func use<Value>(
            _ alias: KeyAlias, _ body: (SecureEnclave.P256.Signing.PrivateKey) throws(KeyStoreError) -> Value,
            orBase: () throws(KeyStoreError) -> Value?
        ) throws(KeyStoreError) -> Value? {
            let id = Self.deviceID(alias)
            var found: Result<Value, KeyStoreError>?
            func look() throws(KeyStoreError) -> Value? {
                if let key = try Self.key(deployed.look(service: Self.service, key: id)) { return try body(key) }
                return try orBase()
            }
            let status = confirmed.run {
                do throws(KeyStoreError) {
                    guard let value = try look() else { return errSecItemNotFound }
                    found = .success(value)
                } catch {
                    found = .failure(error)
                }
                return errSecSuccess
            }
            if let found { return try found.get() }
            guard status == errSecItemNotFound else { throw AppleKeychainStatus.keyStoreError(status) }
            return nil
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
                    throw AppleKeychainStatus.keyStoreError(error)
                }
            }
        }

        private static func deviceID(_ alias: KeyAlias) -> String { String(alias.text.dropFirst(prefix.count)) }
    }
#endif
