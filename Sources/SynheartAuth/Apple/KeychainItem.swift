#if canImport(Security)
    internal import Foundation
    internal import Security

    /// The app or extension that must own the access group of items that name no group. Its own group is
    /// `PREFIX.bundle-id`.
    ///
    /// The Keychain puts such items into the first group of *Keychain Sharing* if there is one, and a look-up without a
    /// group searches every group. So another program may share the items although the configuration names no group. That
    /// program would not use the same locks, and would not notice this program's changes.
    struct GroupOwner: Sendable {
        let bundleID: String

        /// The problem with an item's group; nil if the group is the owner's or is not known.
        func problem(_ attributes: [String: Any]?) -> StorageError? {
            guard let group = attributes?[kSecAttrAccessGroup as String] as? String else { return nil }
            let parts = group.split(separator: ".", maxSplits: 1)
            // A simulator's group may have no prefix.
            guard parts.count == 2, group != bundleID, parts[1] != bundleID || parts[0] == "group" else { return nil }
            return StorageError(
                "the record lies in the Keychain access group \(group), which other programs may share: name it as accessGroup, and a "
                    + "lockDirectory in the container of an app group",
                isMisconfigured: true)
        }
    }

    /// A generic password: this device only, readable after the first unlock.
    struct KeychainItem: Sendable {
        let service: String
        let account: String
        let accessGroup: String?

        /// The query that finds the item.
        var query: [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
                kSecAttrAccount as String: account, kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        /// Reads the item. `run` searches the item's group, and may search another one, or search again before it returns that
        /// there is no item.
        ///
        /// - Parameter owner: The required owner of the item's group; nil: any.
        func read(
            of owner: GroupOwner? = nil, _ run: (_ look: (_ group: String?) -> OSStatus) -> OSStatus = { $0(nil) }
        ) -> StorageReading {
            var wanted = query.merging([
                kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne,
            ]) { $1 }
            if owner != nil { wanted[kSecReturnAttributes as String] = true }
            var item: CFTypeRef?
            let status = run {
                SecItemCopyMatching(KeychainGroupMigration.query(wanted, in: $0) as CFDictionary, &item)
            }
            switch status {
            case errSecSuccess:
                let attributes = item as? [String: Any]
                if let problem = owner?.problem(attributes) { return .unavailable(problem) }
                let value: Any? = if let attributes { attributes[kSecValueData as String] } else { item as Any? }
                guard let data = value as? Data else {
                    return .unavailable(StorageError("not data"))
                }
                return .found(Array(data))
            case errSecItemNotFound: return .absent
            default: return .unavailable(error(status))
            }
        }

        /// Creates the item, or replaces its value.
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

        /// Creates the item. Returns `errSecDuplicateItem` if it exists.
        func add(_ bytes: [UInt8]) -> OSStatus { SecItemAdd(new(bytes) as CFDictionary, nil) }

        /// Creates the item. Returns `found` if the item was created and, unless `owner` is nil, is in the owner's group.
        /// Otherwise returns `unavailable`.
        func add(_ bytes: [UInt8], of owner: GroupOwner?) -> StorageReading {
            guard let owner else {
                let status = add(bytes)
                return status == errSecSuccess ? .found(bytes) : .unavailable(error(status))
            }
            let item = new(bytes).merging([kSecReturnAttributes as String: true]) { $1 }
            var attributes: CFTypeRef?
            let status = SecItemAdd(item as CFDictionary, &attributes)
            guard status == errSecSuccess else { return .unavailable(error(status)) }
            return owner.problem(attributes as? [String: Any]).map { .unavailable($0) } ?? .found(bytes)
        }

        private func new(_ bytes: [UInt8]) -> [String: Any] {
            query.merging([
                kSecValueData as String: Data(bytes),
                kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]) { $1 }
        }

        /// Removes the item. Succeeds if there is none.
        func remove() throws(StorageError) {
            let status = SecItemDelete(query as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw error(status) }
        }

        func error(_ status: OSStatus) -> StorageError {
            AppleKeychainStatus.storageError(status, accessGroup: accessGroup)
        }
    }
#endif
