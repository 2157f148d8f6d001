#if canImport(Security) && canImport(CryptoKit)
    public import AuthContract
    internal import CryptoKit
    internal import Foundation
    internal import Security

    /// P-256 keys in the Secure Enclave, found by tag: non-exportable, this device only, usable after the first unlock.
    public struct SecureEnclaveKeyStore: KeyStore {
        private let accessGroup: String?
        private let canary: KeychainCanary
        private let adoption: KeychainAdoption

        /// Keys of the app, or of an access group that an app shares with its extensions. Keys that the app made before it named a
        /// group move there.
        public init(accessGroup: String? = nil) { self.init(accessGroup: accessGroup, pause: KeychainCanary.pause) }

        init(
            accessGroup: String?, bundleID: String? = Bundle.main.bundleIdentifier,
            pause: @escaping @Sendable () -> Void
        ) {
            self.accessGroup = accessGroup
            canary = KeychainCanary(accessGroup: accessGroup, pause: pause)
            adoption = KeychainAdoption(accessGroup: accessGroup, canary: canary, bundleID: bundleID)
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

        /// The public half; nil only for `errSecItemNotFound`, confirmed.
        public func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
            guard let key = try find(alias) else { return nil }
            return try Self.publicKey(of: key)
        }

        /// Signs in the Secure Enclave.
        public func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            guard let key = try find(alias) else {
                throw KeyStoreError(.notFound, status: Int(errSecItemNotFound), reason: "no such key")
            }
            var signature: CFData?
            var failure: KeyStoreError?
            let status = canary.confirmed {
                var error: Unmanaged<CFError>?
                signature = SecKeyCreateSignature(
                    key, .ecdsaSignatureMessageX962SHA256, Data(message) as CFData, &error)
                failure = signature == nil ? Self.failure(error) : nil
                return failure?.code == .notFound ? errSecItemNotFound : errSecSuccess
            }
            guard let signature else {
                // "Not found" that is not confirmed says nothing about the key.
                if let failure, failure.code != .notFound || status == errSecItemNotFound { throw failure }
                throw AppleKeychainStatus.keyStoreError(errSecNotAvailable)
            }
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
                throw AppleKeychainStatus.keyStoreError(status, accessGroup: accessGroup)
            }
        }

        private func find(_ alias: KeyAlias) throws(KeyStoreError) -> SecKey? {
            let query = query(alias)
            let wanted = query.merging([
                kSecReturnRef as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = adoption.look(query) {
                SecItemCopyMatching(wanted as CFDictionary, &item)
            }
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
