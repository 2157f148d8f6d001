public import AuthContract
internal import Crypto
internal import Foundation

/// Keeps one small record for each app.
///
/// All calls except `versions` may block. The SDK makes them one at a time, on a separate thread, and waits 30 seconds. After that
/// it abandons the call, and makes no other call of this kind until the call returns.
public protocol RecordStorage: Sendable {
    /// Reads the record. On a locked device the result must be unavailable, never absent.
    func read(_ name: RecordName) -> StorageReading

    /// A probe of the record's version, so that the SDK need not read an unchanged record again; nil if the storage has no such probe. The
    /// probe answers within microseconds, without blocking. After a change of the record, it returns another version, or nil.
    func versions(of name: RecordName) -> VersionProbe?

    /// Replaces the record atomically and durably.
    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError)

    /// Removes the record. Succeeds if there is none.
    func remove(_ name: RecordName) throws(StorageError)

    /// Keeps a copy of a record that could not be decoded.
    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError)

    /// Throws unless test records (canaries) prove that the storage works: an existing canary is read back with its data,
    /// and a new one is written. The SDK calls this function before it believes that a record is damaged, or that a
    /// record is absent after an error with `saysAbsent`.
    func checkCanary(of name: RecordName) throws(StorageError)

    /// Takes a lock that all processes sharing the storage respect; nil if another holder has it. A process that dies loses its
    /// locks. `scope` names one of several locks of a record.
    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)?
}

extension RecordStorage {
    /// The default: no probe.
    public func versions(of name: RecordName) -> VersionProbe? { nil }

    /// The default implementation has no canary (test record) to check, and always succeeds.
    public func checkCanary(of name: RecordName) throws(StorageError) {}

    /// Takes a lock, and calls `pause` after each failed attempt.
    ///
    /// - Throws: The errors of `lock`, and `StorageError` after the last attempt.
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

/// Returns the current version of a record or a file; nil if it is unknown.
public typealias VersionProbe = @Sendable () -> RecordVersion?

/// Distinguishes successive versions of a record.
public struct RecordVersion: Sendable, Hashable {
    private let serial: UInt64
    private let size: Int64
    private let seconds: Int64
    private let nanoseconds: Int64

    /// A version from its numbers, such as a file's inode, size and time of change.
    public init(serial: UInt64, size: Int64, seconds: Int64, nanoseconds: Int64) {
        self.serial = serial
        self.size = size
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}

/// The result of reading a record.
public enum StorageReading: Sendable, Hashable {
    /// The bytes as they were written.
    case found([UInt8])
    /// There is no record of this name. Storage that cannot be read now, as on a locked device, is `unavailable`.
    case absent
    /// The storage cannot be read now. The record may exist.
    case unavailable(StorageError)
}

/// A lock.
public protocol StorageLock: Sendable {
    /// Releases the lock. A second call does nothing.
    func release()
}

/// A failure of the storage. It contains nothing of a record.
public struct StorageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An explanation for logs.
    public let reason: String
    /// The platform's number (errno, OSStatus).
    public let status: Int?
    /// Whether the app is built or configured wrongly, such as for an access group that it may not use. The SDK then throws
    /// `NOT_CONFIGURED` with the reason.
    public let isMisconfigured: Bool
    /// Whether the platform reports that the record is absent, but this may be wrong. The SDK believes the report after a
    /// second one at least two seconds later, if `checkCanary` then succeeds.
    public let saysAbsent: Bool
    /// Whether the storage is locked or busy, and may work later.
    public let isTemporary: Bool

    /// Memberwise initializer.
    public init(
        _ reason: String, status: Int? = nil, isMisconfigured: Bool = false, saysAbsent: Bool = false,
        isTemporary: Bool = false
    ) {
        self.reason = reason
        self.status = status
        self.isMisconfigured = isMisconfigured
        self.saysAbsent = saysAbsent
        self.isTemporary = isTemporary
    }

    /// Whether the disk or the user's quota is full: ENOSPC, EDQUOT, or Apple's errSecDiskFull. Such a failure is temporary.
    var isFull: Bool { [Int(ENOSPC), Int(EDQUOT), -34].contains(status) }

    /// Reason and status, for logs.
    public var description: String { "\(reason)\(status.map { " (\($0))" } ?? "")" }
}

/// The name of an app's record: the hash of the app id, so that no id can name a path.
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
