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

        /// Reads it. `run` looks in the item's group, and may look in another one or again before it believes that there is nothing.
        func read(
            _ run: (_ look: (_ group: String?) -> OSStatus) -> OSStatus = { $0(nil) }
        ) -> StorageReading {
            let wanted = query.merging([
                kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = run { SecItemCopyMatching(KeychainAdoption.query(wanted, in: $0) as CFDictionary, &item) }
            switch status {
            case errSecSuccess:
                guard let data = item as? Data else { return .unavailable(StorageError("not data")) }
                return .found(Array(data))
            case errSecItemNotFound: return .absent
            default: return .unavailable(error(status))
            }
        }

        /// Makes it, or replaces its value.
        ///
        /// - Parameter prepare: Runs before the item is made, not before it is replaced.
        func write(
            _ bytes: [UInt8], prepare: () throws(StorageError) -> Void = {}
        ) throws(StorageError) {
            let value: [String: Any] = [kSecValueData as String: Data(bytes)]
            var status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
            if status == errSecItemNotFound {
                try prepare()
                status = add(bytes)
            }
            guard status == errSecSuccess else { throw error(status) }
        }

        /// Makes it. `errSecDuplicateItem` if it exists.
        func add(_ bytes: [UInt8]) -> OSStatus {
            var item = query
            item[kSecValueData as String] = Data(bytes)
            item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            return SecItemAdd(item as CFDictionary, nil)
        }

        /// Removes it. Succeeds if there is no such item.
        func remove() throws(StorageError) {
            let status = SecItemDelete(query as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw error(status) }
        }

        func error(_ status: OSStatus) -> StorageError {
            AppleKeychainStatus.storageError(status, accessGroup: accessGroup)
        }
    }
#endif
