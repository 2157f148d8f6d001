#if canImport(Security)
    internal import Bytes
    internal import Foundation
    internal import Security

    /// Records in the Keychain: this device only, readable after the first unlock, in no backup for another device.
    public struct KeychainStorage: RecordStorage {
        private let accessGroup: String?
        private let locks: LockDirectory?
        private let migration: KeychainGroupMigration
        private let canary: KeychainCanary
        /// The owner of the app's own group; nil if the app names a group or a lock directory, which other programs may share, or
        /// has no bundle id.
        private let owner: GroupOwner?

        static let service = "ai.synheart.auth"

        /// Records of the app, or of an access group.
        ///
        /// - Parameters:
        ///   - accessGroup: the Keychain access group with its prefix; nil: the app's own group, which has the name of its bundle id.
        ///     Records that the app made before it named a group are moved to that group.
        ///   - lockDirectory: The directory of the locks. For an access group, name a directory in the container of an app group,
        ///     which the app and its extensions share. With an access group alone, every operation throws `NOT_CONFIGURED`. With
        ///     neither parameter, an operation throws this error if the record is in a group other than the app's own, such as the
        ///     first group of *Keychain Sharing*.
        public init(accessGroup: String? = nil, lockDirectory: String? = nil) {
            self.init(accessGroup: accessGroup, lockDirectory: lockDirectory, bundleID: Bundle.main.bundleIdentifier)
        }

        init(
            accessGroup: String?, lockDirectory: String? = nil, bundleID: String?,
            folder: String = NSTemporaryDirectory(),
            unprotect: @escaping @Sendable (_ path: String) -> Void = LockDirectory.unprotect
        ) {
            self.accessGroup = accessGroup
            migration = KeychainGroupMigration(accessGroup: accessGroup, bundleID: bundleID)
            canary = KeychainCanary(accessGroup: accessGroup)
            owner = accessGroup == nil && lockDirectory == nil ? bundleID.map { GroupOwner(bundleID: $0) } : nil
            let folder = lockDirectory ?? (accessGroup == nil ? folder : nil)
            locks = folder.map { LockDirectory(path: $0 + "/ai.synheart.auth", unprotect: unprotect) }
        }

        /// Reads the record. If the Keychain finds none, the record's canary (a separate item that states whether the record
        /// was made) decides whether the record is really absent.
        public func read(_ name: RecordName) -> StorageReading {
            if let misconfiguration { return .unavailable(misconfiguration) }
            let item = item(name)
            let reading = item.read(of: owner) { look in
                migration.look(item.query, look) { try? canary.markPresent(name) }
            }
            guard case .absent = reading else { return reading }
            return canary.reading(ofAbsent: name, of: owner)
        }

        /// A probe of the record's version. The Keychain has no versions, so a file next to the locks has the version.
        /// Reading the version is one system call, without a call of the Keychain.
        public func versions(of name: RecordName) -> VersionProbe? { locks?.versions(of: Self.versionFile(name)) }

        /// Replaces the complete item.
        public func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
            if let misconfiguration { throw misconfiguration }
            try changing(name) { () throws(StorageError) in
                try item(name).write(bytes) { () throws(StorageError) in try canary.markPresent(name) }
            }
        }

        /// Removes the record. Succeeds if there is none.
        public func remove(_ name: RecordName) throws(StorageError) {
            try changing(name, isRemoval: true) { () throws(StorageError) in try item(name).remove() }
            // Without this mark, the SDK does not believe the next "not found", but only a second one at least two seconds later.
            canary.markGone(name)
        }

        /// Makes a change. Ends the record's version before the change, and lets readers make a new version after it, so that
        /// no process uses a record that it cached before the change.
        private func changing(
            _ name: RecordName, isRemoval: Bool = false, _ change: () throws(StorageError) -> Void
        ) throws(StorageError) {
            guard let locks else { return try change() }
            do throws(PrivateDirectory.Failure) {
                try locks.beginChange(of: Self.versionFile(name))
            } catch {
                // Remove the record even if the disk is too full to mark the version file. A process that still signs with a cached
                // record then finds no key, and re-reads the record.
                let failure = error.storageError(in: locks.path)
                guard isRemoval, failure.isFull else { throw failure }
            }
            defer { locks.endChange(of: Self.versionFile(name)) }
            try change()
        }

        private static func versionFile(_ name: RecordName) -> String { "\(name.text).version" }

        /// Keeps a copy of an unreadable record under a separate name.
        public func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
            try item(RecordName(hashing: "unreadable \(name.text)")).write(bytes)
        }

        /// Throws if the record's canary (a separate item that states whether the record was made) is damaged or cannot be
        /// read, or if a new test item cannot be written and read.
        public func checkCanary(of name: RecordName) throws(StorageError) { try canary.check(name.text) }

        /// Takes a file lock, because the Keychain has no locks.
        public func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
            guard let locks else { throw misconfiguration ?? StorageError("no lock directory") }
            do throws(PrivateDirectory.Failure) {
                return try locks.lock("\(name.text).\(scope).lock")
            } catch {
                // If `owner` is set, the locks are in the temporary folder. The system may empty that folder, and on a full disk no new
                // lock file can be made. A lock within this process is then enough, because no other process shares these records.
                let failure = error.storageError(in: locks.path)
                guard owner != nil, failure.isFull else { throw failure }
                return ProcessLock.take("\(name.text).\(scope)")
            }
        }

        /// The error of an access group without a lock directory; nil in any other case. Without a lock that the app and its
        /// extensions share, both could register or rotate concurrently.
        private var misconfiguration: StorageError? {
            guard let accessGroup, locks == nil else { return nil }
            return StorageError(
                "the Keychain access group \(accessGroup) needs a lockDirectory in the container of an app group",
                isMisconfigured: true)
        }

        private func item(_ name: RecordName) -> KeychainItem {
            KeychainItem(service: Self.service, account: name.text, accessGroup: accessGroup)
        }
    }

    /// A lock within this process, for records that no other process shares.
    private final class ProcessLock: StorageLock {
        private static let held = Locked<Set<String>>([])
        private let name: Locked<String?>

        private init(_ name: String) { self.name = Locked(name) }

        deinit { release() }

        static func take(_ name: String) -> ProcessLock? {
            held.withLock { $0.insert(name).inserted } ? ProcessLock(name) : nil
        }

        func release() {
            let name = name.withLock { name in
                defer { name = nil }
                return name
            }
            if let name { Self.held.withLock { _ = $0.remove(name) } }
        }
    }

    /// The directory of the lock files and version files. They have no file protection: a locked phone must be able to open them,
    /// and an open file must stay open.
    ///
    /// A version file represents one version of a record that is stored elsewhere. It is empty while the record does not change.
    /// A writer marks the file before a change, which ends the version, and removes the file after the change. If there is no file,
    /// a reader creates one. While a file is marked, a reader caches nothing, because it may have read the record before the
    /// change. The mark of a killed writer stays until the next change. Until then the record is read for each signature.
    struct LockDirectory: Sendable {
        private let directory: PrivateDirectory
        private let unprotect: @Sendable (_ path: String) -> Void

        var path: String { directory.path }

        init(path: String, unprotect: @escaping @Sendable (_ path: String) -> Void) {
            directory = PrivateDirectory(path: path)
            self.unprotect = unprotect
        }

        /// Takes a lock; nil if another holder has it. Unprotects the directory and the file: new files get the protection class of
        /// their directory, but files that an earlier version of the SDK made may have another class.
        func lock(_ name: String) throws(PrivateDirectory.Failure) -> FileLock? {
            try directory.ensureExists()
            unprotect(directory.path)
            let lock = try directory.lock(name)
            if lock != nil { unprotect(directory.path + "/" + name) }
            return lock
        }

        /// A probe of a version file, which is created if absent; nil if the directory cannot be used.
        func versions(of name: String) -> VersionProbe? {
            guard (try? directory.ensureExists()) != nil else { return nil }
            unprotect(directory.path)
            let probe = directory.versions(ofEmpty: name)
            unprotect(directory.path + "/" + name)
            return probe
        }

        /// Ends the current version of a record before the record changes, by marking the version file.
        func beginChange(of name: String) throws(PrivateDirectory.Failure) {
            try directory.ensureExists()
            unprotect(directory.path)
            try directory.mark(name)
            unprotect(directory.path + "/" + name)
        }

        /// Lets readers make a new version of a record after the record has changed, by removing the marked version file.
        func endChange(of name: String) { directory.removeMarked(name) }

        #if canImport(Darwin)
            /// Removes the file protection, best effort: simulators have no protection classes.
            static let unprotect: @Sendable (_ path: String) -> Void = { path in
                try? FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.none], ofItemAtPath: path)
            }
        #else
            static let unprotect: @Sendable (_ path: String) -> Void = { _ in }
        #endif
    }
#endif
