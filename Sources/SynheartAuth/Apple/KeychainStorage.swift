#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Records in the Keychain: this device only, readable after the first unlock, in no backup for another device.
    public struct KeychainStorage: RecordStorage {
        private let accessGroup: String?
        private let locks: PrivateDirectory
        private let canary: KeychainCanary

        static let service = "ai.synheart.auth"

        /// Records of the app, or of an access group.
        ///
        /// - Parameters:
        ///   - accessGroup: The Keychain access group with its prefix; nil for the app's own. Records that the app made before it
        ///     named a group move there.
        ///   - lockDirectory: The directory of the locks. An app and its extensions use a directory in their app group's container.
        ///     An extension must not be suspended while it holds a lock there.
        public init(accessGroup: String? = nil, lockDirectory: String? = nil) {
            self.init(accessGroup: accessGroup, lockDirectory: lockDirectory, pause: KeychainCanary.pause)
        }

        init(accessGroup: String?, lockDirectory: String? = nil, pause: @escaping @Sendable () -> Void) {
            self.accessGroup = accessGroup
            canary = KeychainCanary(accessGroup: accessGroup, pause: pause)
            locks = PrivateDirectory(path: (lockDirectory ?? NSTemporaryDirectory()) + "/ai.synheart.auth")
        }

        /// Only `errSecItemNotFound`, confirmed, reads as absent. Everything else is unavailable.
        public func read(_ name: RecordName) -> StorageReading {
            let query = query(name)
            let wanted = query.merging([
                kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            var item: CFTypeRef?
            let status = KeychainAdoption.look(query, accessGroup: accessGroup, canary) {
                SecItemCopyMatching(wanted as CFDictionary, &item)
            }
            switch status {
            case errSecSuccess:
                guard let data = item as? Data else { return .unavailable(StorageError("not data")) }
                return .found(Array(data))
            case errSecItemNotFound: return .absent
            default: return .unavailable(error(status))
            }
        }

        /// Replaces the item as a whole.
        public func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
            let value: [String: Any] = [kSecValueData as String: Data(bytes)]
            var status = SecItemUpdate(query(name) as CFDictionary, value as CFDictionary)
            if status == errSecItemNotFound {
                var item = query(name).merging(value) { $1 }
                item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
                status = SecItemAdd(item as CFDictionary, nil)
            }
            guard status == errSecSuccess else { throw error(status) }
        }

        /// Succeeds if there is no such item.
        public func remove(_ name: RecordName) throws(StorageError) {
            let status = SecItemDelete(query(name) as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw error(status) }
        }

        /// Keeps the copy under a name of its own.
        public func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
            try write(bytes, to: RecordName(hashing: "unreadable \(name.text)"))
        }

        /// Takes a file lock: the Keychain has none.
        public func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
            do throws(PrivateDirectory.Failure) {
                return try locks.lock("\(name.text).\(scope).lock")
            } catch {
                throw error.storageError
            }
        }

        private func query(_ name: RecordName) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: Self.service,
                kSecAttrAccount as String: name.text, kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        private func error(_ status: OSStatus) -> StorageError {
            AppleKeychainStatus.storageError(status, accessGroup: accessGroup)
        }
    }
#endif
