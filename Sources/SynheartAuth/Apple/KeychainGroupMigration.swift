#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Moves items from the app's own access groups to the group that it shares with its extensions, if the app named that
    /// group only after the items were made.
    ///
    /// Items that name no group are in the default group: the first group of the target's *Keychain Sharing*, or the group
    /// of the App ID if the target has no *Keychain Sharing*. The default group changes when an app begins to share, so
    /// the items may be in either of these two groups. Items in other groups are not moved, because they may belong to
    /// another app of the team, whose identity must not move.
    struct KeychainGroupMigration: Sendable {
        let accessGroup: String?
        /// The app's bundle id.
        let bundleID: String?

        /// Runs a look-up. If nothing is found in the access group, moves the items from the app's own groups and looks again.
        /// An item that the Keychain does not move is used in its old group, by the app but not by its extensions.
        ///
        /// - Parameters:
        ///   - query: The query that finds the item.
        ///   - look: Looks up the item in a group, or in the query's own group if `group` is nil.
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
                // In some old apps the prefix of the App ID differs from that of the default group. The group built above then does
                // not belong to the app, and the Keychain refuses it with `errSecMissingEntitlement`.
                case errSecItemNotFound, errSecMissingEntitlement: continue
                default:
                    let there = look(source)
                    return there == errSecItemNotFound ? status : there
                }
            }
            return errSecItemNotFound
        }

        /// The query with `group` as its access group; the unchanged query if `group` is nil.
        static func query(_ query: [String: Any], in group: String?) -> [String: Any] {
            group.map { group in query.merging([kSecAttrAccessGroup as String: group]) { $1 } } ?? query
        }

        private struct Failure: Error { let status: OSStatus }

        /// The default group, which contains the items that name no group. Adds a probe item without a group, and returns the
        /// group that the Keychain reports for it.
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
