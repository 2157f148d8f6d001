#if canImport(Security) && canImport(CryptoKit)
    public import AuthContract
    internal import CryptoKit
    internal import Foundation
    internal import Security

    /// P-256 keys in the Secure Enclave, found by tag: non-exportable, this device only, usable after the first unlock.
    public struct SecureEnclaveKeyStore: KeyStore {
        private let accessGroup: String?

        /// Keys of the app, or of an access group that an app shares with its extensions.
        public init(accessGroup: String? = nil) { self.accessGroup = accessGroup }

        /// The Secure Enclave.
        public var protection: KeyProtection { .secureEnclave }

        /// Makes a key in the Secure Enclave. Throws `unsupported` if there is none, as in a simulator.
        public func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            guard SecureEnclave.isAvailable else {
                throw KeyStoreError(.unsupported, reason: "there is no Secure Enclave")
            }
            try delete(alias)
            var error: Unmanaged<CFError>?
            guard
                let access = SecAccessControlCreateWithFlags(
                    kCFAllocatorDefault, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, &error)
            else { throw Self.failure(error) }
            var privateAttributes: [String: Any] = [
                kSecAttrIsPermanent as String: true, kSecAttrApplicationTag as String: Data(alias.text.utf8),
                kSecAttrAccessControl as String: access,
            ]
            if let accessGroup { privateAttributes[kSecAttrAccessGroup as String] = accessGroup }
            let attributes: [String: Any] = [
                kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits as String: 256,
                kSecAttrTokenID as String: kSecAttrTokenIDSecureEnclave,
                kSecUseDataProtectionKeychain as String: true, kSecPrivateKeyAttrs as String: privateAttributes,
            ]
            guard let key = SecKeyCreateRandomKey(attributes as CFDictionary, &error) else { throw Self.failure(error) }
            return try Self.publicKey(of: key)
        }

        /// The public half; nil only for `errSecItemNotFound`.
        public func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
            guard let key = try find(alias) else { return nil }
            return try Self.publicKey(of: key)
        }

        /// Signs in the Secure Enclave.
        public func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            guard let key = try find(alias) else {
                throw KeyStoreError(.notFound, status: Int(errSecItemNotFound), reason: "no such key")
            }
            var error: Unmanaged<CFError>?
            guard
                let signature = SecKeyCreateSignature(
                    key, .ecdsaSignatureMessageX962SHA256, Data(message) as CFData, &error)
            else { throw Self.failure(error) }
            do throws(ContractError) {
                return try RequestSignature(der: Array(signature as Data))
            } catch {
                throw KeyStoreError(.failed, reason: "not a signature")
            }
        }

        /// Deletes every key of this name.
        public func delete(_ alias: KeyAlias) throws(KeyStoreError) {
            let status = SecItemDelete(query(alias) as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else {
                throw AppleKeychainStatus.keyStoreError(status)
            }
        }

        private func find(_ alias: KeyAlias) throws(KeyStoreError) -> SecKey? {
            var query = query(alias)
            query[kSecReturnRef as String] = true
            query[kSecMatchLimit as String] = kSecMatchLimitOne
            var item: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &item)
            switch status {
            case errSecSuccess: break
            case errSecItemNotFound: return nil
            default: throw AppleKeychainStatus.keyStoreError(status)
            }
            guard let item, CFGetTypeID(item) == SecKeyGetTypeID() else {
                throw KeyStoreError(.failed, reason: "not a key")
            }
            // Core Foundation types have no conditional cast. The type id above proves that this cast cannot fail.
            // swift-format-ignore: NeverForceUnwrap
            return (item as! SecKey)
        }

        private func query(_ alias: KeyAlias) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassKey, kSecAttrApplicationTag as String: Data(alias.text.utf8),
                kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom,
                kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        private static func publicKey(of key: SecKey) throws(KeyStoreError) -> DevicePublicKey {
            var error: Unmanaged<CFError>?
            guard let publicKey = SecKeyCopyPublicKey(key) else {
                throw KeyStoreError(.notFound, reason: "the key has no public half any more")
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
            return AppleKeychainStatus.keyStoreError(
                domain: CFErrorGetDomain(error) as String, code: Int(CFErrorGetCode(error)))
        }
    }
#endif
