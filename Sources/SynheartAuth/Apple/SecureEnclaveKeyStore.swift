#if canImport(Security) && canImport(CryptoKit)
    public import AuthContract
    internal import CryptoKit
    internal import Foundation
    internal import Security

    /// P-256 keys in the Secure Enclave, found by tag: non-exportable, this device only, usable after the first unlock.
    public struct SecureEnclaveKeyStore: KeyStore {
        private let accessGroup: String?
        private let migration: KeychainGroupMigration

        /// Keys of the app, or of an access group that an app shares with its extensions. Keys that the app made before it named
        /// a group are moved to that group.
        public init(accessGroup: String? = nil) {
            self.init(accessGroup: accessGroup, bundleID: Bundle.main.bundleIdentifier)
        }

        init(accessGroup: String?, bundleID: String?) {
            self.accessGroup = accessGroup
            migration = KeychainGroupMigration(accessGroup: accessGroup, bundleID: bundleID)
        }

        /// The Secure Enclave.
        public var protection: KeyProtection { .secureEnclave }

        /// Makes a key in the Secure Enclave. Throws `unsupported` if there is none, as in a simulator.
        public func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            guard SecureEnclave.isAvailable else {
                throw KeyStoreError(
                    .unsupported,
                    reason:
                        "there is no Secure Enclave; in a simulator, name a SoftwareKeyStore in Configuration.keyStore")
            }
            try delete(alias)
            let key = try make(alias.text)
            // Make a canary key of the same kind and age, and the Keychain's canary if absent. They show later whether the
            // platform works. Best effort: `checkCanaries` makes missing canaries.
            _ = try? make(Self.canary(alias))
            try? KeychainCanary(accessGroup: accessGroup).check()
            return try Self.publicKey(of: key)
        }

        private func make(_ tag: String) throws(KeyStoreError) -> SecKey {
            var error: Unmanaged<CFError>?
            guard
                let access = SecAccessControlCreateWithFlags(
                    kCFAllocatorDefault, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, &error)
            else { throw Self.failure(error) }
            var privateAttributes: [String: Any] = [
                kSecAttrIsPermanent as String: true, kSecAttrApplicationTag as String: Data(tag.utf8),
                kSecAttrAccessControl as String: access,
            ]
            if let accessGroup { privateAttributes[kSecAttrAccessGroup as String] = accessGroup }
            let attributes: [String: Any] = [
                kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits as String: 256,
                kSecAttrTokenID as String: kSecAttrTokenIDSecureEnclave,
                kSecUseDataProtectionKeychain as String: true, kSecPrivateKeyAttrs as String: privateAttributes,
            ]
            guard let key = SecKeyCreateRandomKey(attributes as CFDictionary, &error) else { throw Self.failure(error) }
            return key
        }

        /// The public half; nil for `errSecItemNotFound`.
        public func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
            guard let key = try find(alias.text) else { return nil }
            return try Self.publicKey(of: key)
        }

        /// Signs in the Secure Enclave.
        public func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            guard let key = try find(alias.text) else {
                throw KeyStoreError(.notFound, status: Int(errSecItemNotFound), reason: "no such key")
            }
            return try Self.sign(message, key)
        }

        private static func sign(_ message: [UInt8], _ key: SecKey) throws(KeyStoreError) -> RequestSignature {
            var error: Unmanaged<CFError>?
            guard
                let signature = SecKeyCreateSignature(
                    key, .ecdsaSignatureMessageX962SHA256, Data(message) as CFData, &error)
            else { throw failure(error) }
            do throws(ContractError) {
                return try RequestSignature(der: Array(signature as Data))
            } catch {
                throw KeyStoreError(.failed, reason: "not a signature")
            }
        }

        /// Deletes every key of this name, and the canary (a test key) that belongs to this name.
        public func delete(_ alias: KeyAlias) throws(KeyStoreError) {
            try delete(alias.text)
            try delete(Self.canary(alias))
        }

        private func delete(_ tag: String) throws(KeyStoreError) {
            let status = SecItemDelete(query(tag) as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else {
                throw AppleKeychainStatus.keyStoreError(status, accessGroup: accessGroup)
            }
        }

        /// Throws if the check of the Keychain's canary (a test item) fails, or if the key's canary (a test key of the same
        /// kind) cannot sign.
        ///
        /// A canary key that is not found, or is permanently unusable, is replaced: if the new one is found and signs, the
        /// platform works. Any other failure of the canary key fails this check. The canary key is then replaced too, unless it is
        /// only unavailable, as on a locked device.
        public func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) {
            do throws(StorageError) { try KeychainCanary(accessGroup: accessGroup).check() } catch {
                throw KeyStoreError(.unavailable, status: error.status, reason: error.reason)
            }
            let tag = Self.canary(alias)
            do throws(KeyStoreError) {
                if let key = try find(tag) {
                    _ = try Self.sign(Array(tag.utf8), key)
                    return
                }
            } catch {
                guard error.code != .unavailable else { throw error }
                try delete(tag)
                if error.code != .invalidated {
                    _ = try make(tag)
                    throw error
                }
            }
            _ = try make(tag)
            guard let key = try find(tag) else { throw AppleKeychainStatus.keyStoreError(errSecNotAvailable) }
            _ = try Self.sign(Array(tag.utf8), key)
        }

        private static func canary(_ alias: KeyAlias) -> String { "\(alias.text) canary" }

        private func find(_ tag: String) throws(KeyStoreError) -> SecKey? {
            let query = query(tag)
            let wanted = query.merging([
                kSecReturnRef as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = migration.look(
                query, { SecItemCopyMatching(KeychainGroupMigration.query(wanted, in: $0) as CFDictionary, &item) })
            switch status {
            case errSecSuccess: break
            case errSecItemNotFound: return nil
            default: throw AppleKeychainStatus.keyStoreError(status, accessGroup: accessGroup)
            }
            guard let item, CFGetTypeID(item) == SecKeyGetTypeID() else {
                throw KeyStoreError(.failed, reason: "not a key")
            }
            // Core Foundation types have no conditional cast. The type id above proves that this cast cannot fail.
            // swift-format-ignore: NeverForceUnwrap
            return (item as! SecKey)
        }

        private func query(_ tag: String) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassKey, kSecAttrApplicationTag as String: Data(tag.utf8),
                kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom,
                kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        private static func publicKey(of key: SecKey) throws(KeyStoreError) -> DevicePublicKey {
            var error: Unmanaged<CFError>?
            guard let publicKey = SecKeyCopyPublicKey(key) else {
                throw KeyStoreError(.failed, reason: "the key has no public half")
            }
            guard let point = SecKeyCopyExternalRepresentation(publicKey, &error) else { throw failure(error) }
            do throws(ContractError) {
                return try DevicePublicKey(Array(point as Data))
            } catch {
                throw KeyStoreError(.failed, reason: "not a P-256 key")
            }
        }

        private static func failure(_ error: Unmanaged<CFError>?) -> KeyStoreError {
            guard let error = error?.takeRetainedValue() else {
                return KeyStoreError(.failed, reason: "no reason given")
            }
            return AppleKeychainStatus.keyStoreError(error)
        }
    }
#endif
