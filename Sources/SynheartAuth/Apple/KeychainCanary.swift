#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Confirms that the Keychain does not have an item.
    ///
    /// At a prewarmed launch the Keychain answers "not found" for items that exist. So that answer counts only if another item, the
    /// canary, can be read, and a second look after a pause finds nothing either.
    struct KeychainCanary: Sendable {
        private let accessGroup: String?
        private let pause: @Sendable () -> Void

        init(accessGroup: String?, pause: @escaping @Sendable () -> Void = Self.pause) {
            self.accessGroup = accessGroup
            self.pause = pause
        }

        /// Blocks for 200 ms. The SDK calls the Keychain on a thread of its own.
        static let pause: @Sendable () -> Void = { Thread.sleep(forTimeInterval: 0.2) }

        /// Another service than the records': a reset that removes every record leaves the canary.
        static let service = "ai.synheart.auth.canary"

        /// The status of a look-up. `errSecItemNotFound` only if it is certain; `errSecNotAvailable` if the answer cannot be believed.
        func confirmed(_ look: () -> OSStatus) -> OSStatus {
            let status = look()
            guard status == errSecItemNotFound else { return status }
            guard isReadable else { return errSecNotAvailable }
            pause()
            return look()
        }

        /// Whether the canary can be read. The first use makes it; if it exists after all, the Keychain did not tell the truth.
        private var isReadable: Bool {
            let canary = KeychainItem(service: Self.service, account: "canary", accessGroup: accessGroup).query
            let status = SecItemCopyMatching(canary as CFDictionary, nil)
            guard status == errSecItemNotFound else { return status == errSecSuccess }
            var item = canary
            item[kSecValueData as String] = Data([1])
            item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            return SecItemAdd(item as CFDictionary, nil) == errSecSuccess
                && SecItemCopyMatching(canary as CFDictionary, nil) == errSecSuccess
        }
    }
#endif
