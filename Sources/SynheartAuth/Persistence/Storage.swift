public import AuthContract
internal import Crypto

internal import struct Foundation.Data

/// Keeps one small record for each app, as a whole. Calls may block: the SDK makes them one at a time, on a thread of its own, and
/// waits 30 seconds. A call that has not returned by then is left behind, and none of its kind is made until it has.
public protocol Storage: Sendable {
    /// The record, that there is none, or that nobody can say now: a locked device never reads as absent.
    func read(_ name: RecordName) -> StorageReading

    /// Tells whether the record has changed, in a microsecond and without blocking; nil where that cannot be done. It spares
    /// reading a record again.
    func versions(of name: RecordName) -> VersionProbe?

    /// Replaces the record, all or nothing, durably.
    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError)

    /// Removes the record; one that is not there counts as removed.
    func remove(_ name: RecordName) throws(StorageError)

    /// Keeps a copy of a record that could not be decoded beside it.
    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError)

    /// Takes a lock that all processes which share the storage respect; nil where somebody has it. A process that dies
    /// loses its locks. One record has several locks, named by `scope`.
    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)?
}

extension Storage {
    /// Nothing is known without reading.
    public func versions(of name: RecordName) -> VersionProbe? { nil }

    /// Takes a lock for a caller that may block, and calls `pause` after each attempt that found it held.
    ///
    /// - Throws: What `lock` throws, and `StorageError` once so many attempts were in vain.
    package func takeTurn(
        _ name: RecordName, for scope: String, attempts: Int, pause: () -> Void
    ) throws(StorageError) -> any StorageLock {
        for _ in 0..<attempts {
            if let lock = try lock(name, for: scope) { return lock }
            pause()
        }
        throw StorageError("another process holds the lock")
    }
}

/// Says which version of something is there now; nil where nobody can say.
public typealias VersionProbe = @Sendable () -> RecordVersion?

/// Tells a record from the ones before it and after it.
public struct RecordVersion: Sendable, Hashable {
    private let serial: UInt64
    private let size: Int64
    private let seconds: Int64
    private let nanoseconds: Int64

    /// A version that is known by these numbers, such as a file's: its inode, its size, when it changed.
    public init(serial: UInt64, size: Int64, seconds: Int64, nanoseconds: Int64) {
        self.serial = serial
        self.size = size
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}

/// What reading a record found.
public enum StorageReading: Sendable, Hashable {
    case found([UInt8])
    case absent
    case unavailable(StorageError)
}

/// A lock that is held.
public protocol StorageLock: Sendable {
    /// Gives it back; once is enough, twice does no harm.
    func release()
}

/// Storage did not do what it was asked. Holds nothing of a record.
public struct StorageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// For logs.
    public let reason: String
    /// The platform's own number (an errno, an OSStatus).
    public let status: Int?

    /// An error.
    public init(_ reason: String, status: Int? = nil) {
        self.reason = reason
        self.status = status
    }

    /// For logs.
    public var description: String { "\(reason)\(status.map { " (\($0))" } ?? "")" }
}

/// Names an app's record without saying which app: the hash of its id, so that no id can name a path.
public struct RecordName: Sendable, Hashable, CustomStringConvertible {
    /// 64 hexadecimal digits: SHA-256 of the app id.
    public let text: String

    /// The name of an app's record.
    public init(_ appID: AppID) { self.init(hashing: appID.text) }

    package init(hashing text: String) {
        self.text = Hexadecimal.encode(Array(SHA256.hash(data: Data(text.utf8))))
    }

    /// The name.
    public var description: String { text }
}
