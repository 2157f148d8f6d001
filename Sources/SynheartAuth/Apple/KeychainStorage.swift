#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Records in the Keychain: this device only, readable after the first unlock, in no backup for another device.
    public struct KeychainStorage: RecordStorage {
        private let accessGroup: String?
        private let locks: PrivateDirectory
        private let adoption: KeychainAdoption

        static let service = "ai.synheart.auth"

        /// Records of the app, or of an access group.
        ///
        /// - Parameters:
        ///   - accessGroup: The Keychain access group with its prefix; nil for the app's default group. Records that the app made
        ///     before it named a group move there.
        ///   - lockDirectory: The directory of the locks. An app and its extensions use a directory in their app group's container.
        ///     An extension must not be suspended while it holds a lock there.
        public init(accessGroup: String? = nil, lockDirectory: String? = nil) {
            self.init(accessGroup: accessGroup, lockDirectory: lockDirectory, pause: KeychainCanary.pause)
        }

        init(
            accessGroup: String?, lockDirectory: String? = nil, bundleID: String? = Bundle.main.bundleIdentifier,
            pause: @escaping @Sendable () -> Void
        ) {
            self.accessGroup = accessGroup
            adoption = KeychainAdoption(
                accessGroup: accessGroup, canary: KeychainCanary(accessGroup: accessGroup, pause: pause),
                bundleID: bundleID)
            locks = PrivateDirectory(path: (lockDirectory ?? NSTemporaryDirectory()) + "/ai.synheart.auth")
        }

        /// Only `errSecItemNotFound`, confirmed, reads as absent. Everything else is unavailable.
        public func read(_ name: RecordName) -> StorageReading {
            let item = item(name)
            return item.read { look in adoption.look(item.query, look) }
        }

        /// Replaces the item as a whole.
        public func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) { try item(name).write(bytes) }

        /// Succeeds if there is no such item.
        public func remove(_ name: RecordName) throws(StorageError) { try item(name).remove() }

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

        private func item(_ name: RecordName) -> KeychainItem {
            KeychainItem(service: Self.service, account: name.text, accessGroup: accessGroup)
        }
    }
#endif
