#if canImport(Security)
    internal import Foundation
    internal import Security

    /// A generic password: this device only, readable after the first unlock.
    struct KeychainItem: Sendable {
        let service: String
        let account: String
        let accessGroup: String?

        /// What finds it.
        var query: [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
                kSecAttrAccount as String: account, kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        /// Reads it. `run` looks, and may look again before it believes that there is nothing.
        func read(_ run: (() -> OSStatus) -> OSStatus) -> StorageReading {
            let wanted = query.merging([
                kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = run { SecItemCopyMatching(wanted as CFDictionary, &item) }
            switch status {
            case errSecSuccess:
                guard let data = item as? Data else { return .unavailable(StorageError("not data")) }
                return .found(Array(data))
            case errSecItemNotFound: return .absent
            default: return .unavailable(error(status))
            }
        }

        /// Makes it, or replaces its value.
        func write(_ bytes: [UInt8]) throws(StorageError) {
            let value: [String: Any] = [kSecValueData as String: Data(bytes)]
            var status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
            if status == errSecItemNotFound {
                var item = query.merging(value) { $1 }
                item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
                status = SecItemAdd(item as CFDictionary, nil)
            }
            guard status == errSecSuccess else { throw error(status) }
        }

        /// Removes it. Succeeds if there is no such item.
        func remove() throws(StorageError) {
            let status = SecItemDelete(query as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw error(status) }
        }

        private func error(_ status: OSStatus) -> StorageError {
            AppleKeychainStatus.storageError(status, accessGroup: accessGroup)
        }
    }
#endif
