internal import AuthContract
internal import Foundation

/// Files with private keys. Only their owner can read them, even while they are being written.
enum PrivateFile {
    /// Replaces or creates a file atomically.
    static func write(_ content: Data, to path: String) throws {
        try withTemporary(content, beside: path) { temporary in
            guard rename(temporary, path) == 0 else { throw failure() }
        }
    }

    /// Creates a file.
    ///
    /// - Returns: false if the file already exists; its content stays.
    static func make(_ content: Data, at path: String) throws -> Bool {
        try withTemporary(content, beside: path) { temporary in
            if link(temporary, path) == 0 { return true }
            guard errno == EEXIST else { throw failure() }
            return false
        }
    }

    private static func withTemporary<Value>(
        _ content: Data, beside path: String, _ body: (String) throws -> Value
    ) throws -> Value {
        let temporary = "\(path).\(RandomUUID(from: SystemRandom()).text)"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure() }
        defer { unlink(temporary) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: content)
        return try body(temporary)
    }

    private static func failure() -> CocoaError {
        CocoaError(errno == ENOSPC ? .fileWriteOutOfSpace : errno == ENOENT ? .fileNoSuchFile : .fileWriteUnknown)
    }
}
