#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Moves items from the app's own access groups to the group that it shares with its extensions, if the app named that group
    /// only after the items were made.
    ///
    /// Items that name no group are in the default group: the first of the target's *Keychain Sharing*, or without that the group
    /// of the App ID. When an app begins to share, its default group changes, so both are sources. Other groups are not, because
    /// their items may belong to another app of the team, whose identity must not move.
    struct KeychainGroupMigration: Sendable {
        let accessGroup: String?
        /// The app's bundle id.
        let bundleID: String?

        /// Runs a look-up. If nothing is found in the access group, moves the items from the app's own groups and looks again. An
        /// item that the Keychain does not move is used in its old group, by the app but not by its extensions.
        ///
        /// - Parameters:
        ///   - query: The query that finds the item.
        ///   - look: Looks in a group; nil: the query's own.
        ///   - moved: Runs after the item was moved.
        func look(
            _ query: [String: Any], _ look: (_ group: String?) -> OSStatus, moved: () -> Void = {}
        ) -> OSStatus {
            let status = look(nil)
            guard status == errSecItemNotFound, let accessGroup else { return status }
            let defaultGroup: String
            switch Self.defaultGroup() {
            case .success(let group): defaultGroup = group
            case .failure(let failure): return failure.status
            }
            var sources = [defaultGroup]
            if let bundleID, let prefix = defaultGroup.split(separator: ".").first {
                sources.append("\(prefix).\(bundleID)")
            }
            for source in sources where source != accessGroup {
                let status = SecItemUpdate(
                    Self.query(query, in: source) as CFDictionary,
                    [kSecAttrAccessGroup as String: accessGroup] as CFDictionary)
                switch status {
                case errSecSuccess:
                    moved()
                    return look(nil)
                // In some old apps the group of the App ID has another prefix than the default group. Then the app is not entitled
                // to this source.
                case errSecItemNotFound, errSecMissingEntitlement: continue
                default:
                    let there = look(source)
                    return there == errSecItemNotFound ? status : there
                }
            }
            return errSecItemNotFound
        }

        /// The query, for another group; nil: unchanged.
        static func query(_ query: [String: Any], in group: String?) -> [String: Any] {
            group.map { group in query.merging([kSecAttrAccessGroup as String: group]) { $1 } } ?? query
        }

        private struct Failure: Error { let status: OSStatus }

        /// The group of items that name none. The Keychain returns it when an item is made.
        private static func defaultGroup() -> Result<String, Failure> {
            // A unique name, so that an item of another group is not mistaken for the probe.
            let probe: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: KeychainCanary.service,
                kSecAttrAccount as String: "probe \(UUID().uuidString)", kSecUseDataProtectionKeychain as String: true,
            ]
            let made = probe.merging([
                kSecValueData as String: Data([1]), kSecReturnAttributes as String: true,
                kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]) { $1 }
            var attributes: CFTypeRef?
            let status = SecItemAdd(made as CFDictionary, &attributes)
            defer { _ = SecItemDelete(probe as CFDictionary) }
            guard status == errSecSuccess else { return .failure(Failure(status: status)) }
            guard let group = (attributes as? [String: Any])?[kSecAttrAccessGroup as String] as? String else {
                return .failure(Failure(status: errSecNotAvailable))
            }
            return .success(group)
        }
    }
#endif
