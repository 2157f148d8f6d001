#if canImport(Security)
    internal import Foundation
    internal import Security

    /// The runtime's secrets as Keychain items with the service and the key as given: so it finds what deployed apps stored.
    struct KeychainSecrets: RuntimeSecrets {
        private let canary: KeychainCanary

        init(pause: @escaping @Sendable () -> Void = KeychainCanary.pause) {
            canary = KeychainCanary(accessGroup: nil, pause: pause)
        }

        func read(service: String, key: String) -> StorageReading { read(service, key) { canary.confirmed($0) } }

        /// Reads without confirming that there is nothing.
        func look(service: String, key: String) -> StorageReading { read(service, key) { $0() } }

        private func read(_ service: String, _ key: String, _ run: (() -> OSStatus) -> OSStatus) -> StorageReading {
            let wanted = query(service, key).merging([
                kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = run { SecItemCopyMatching(wanted as CFDictionary, &item) }
            switch status {
            case errSecSuccess:
                guard let data = item as? Data else { return .unavailable(StorageError("not data")) }
                return .found(Array(data))
            case errSecItemNotFound: return .absent
            default: return .unavailable(AppleKeychainStatus.storageError(status, accessGroup: nil))
            }
        }

        func write(_ bytes: [UInt8], service: String, key: String) throws(StorageError) {
            let value: [String: Any] = [kSecValueData as String: Data(bytes)]
            var status = SecItemUpdate(query(service, key) as CFDictionary, value as CFDictionary)
            if status == errSecItemNotFound {
                var item = query(service, key).merging(value) { $1 }
                item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
                status = SecItemAdd(item as CFDictionary, nil)
            }
            guard status == errSecSuccess else {
                throw AppleKeychainStatus.storageError(status, accessGroup: nil)
            }
        }

        func remove(service: String, key: String) throws(StorageError) {
            let status = SecItemDelete(query(service, key) as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else {
                throw AppleKeychainStatus.storageError(status, accessGroup: nil)
            }
        }

        private func query(_ service: String, _ key: String) -> [String: Any] {
            [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
                kSecAttrAccount as String: key, kSecUseDataProtectionKeychain as String: true,
            ]
        }
    }
#endif
