/// Records as files: one for each app, mode 0600, in a directory of mode 0700. A file is named after the hash of the app id.
///
/// The default on Linux, in `$XDG_STATE_HOME/synheart-auth`, else in `$HOME/.local/state/synheart-auth`.
public struct FileStorage: RecordStorage {
    private let directory: PrivateDirectory

    /// Records in this directory. The first write or lock creates it.
    public init(directory: String) { self.directory = PrivateDirectory(path: directory) }

    /// The directory, as given.
    public var path: String { directory.path }

    /// Reads the record. A link, a file that others can access, and an I/O error are `unavailable`.
    public func read(_ name: RecordName) -> StorageReading {
        do throws(PrivateDirectory.Failure) {
            return try directory.read(Self.file(name)).map { .found($0) } ?? .absent
        } catch {
            return .unavailable(error.storageError(in: path))
        }
    }

    /// A probe of the file's version. Every write creates a new file, so every write changes the version.
    public func versions(of name: RecordName) -> VersionProbe? { directory.versions(of: Self.file(name)) }

    /// Replaces the file atomically: temporary file, fsync, rename, fsync of the directory.
    public func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        try withStorageError { () throws(PrivateDirectory.Failure) in
            try directory.write(bytes, to: Self.file(name))
        }
    }

    /// Removes the file.
    public func remove(_ name: RecordName) throws(StorageError) {
        try withStorageError { () throws(PrivateDirectory.Failure) in try directory.remove(Self.file(name)) }
    }

    /// Keeps a copy of an unreadable record as `{name}.unreadable`.
    public func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
        try withStorageError { () throws(PrivateDirectory.Failure) in
            try directory.write(bytes, to: "\(name.text).unreadable")
        }
    }

    /// Throws unless a test file (the canary) can be written and read back.
    public func checkCanary(of name: RecordName) throws(StorageError) {
        try withStorageError { () throws(PrivateDirectory.Failure) in try directory.check() }
    }

    /// An advisory lock (flock) on a separate file.
    public func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        try withStorageError { () throws(PrivateDirectory.Failure) in
            try directory.lock("\(name.text).\(scope).lock")
        }
    }

    private static func file(_ name: RecordName) -> String { "\(name.text).json" }

    private func withStorageError<Value>(
        _ body: () throws(PrivateDirectory.Failure) -> Value
    ) throws(StorageError) -> Value {
        do throws(PrivateDirectory.Failure) { return try body() } catch { throw error.storageError(in: path) }
    }
}
