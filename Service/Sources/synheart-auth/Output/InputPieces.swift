import Foundation
import Glibc

/// A file, or standard input for `-`, in pieces as they arrive, so that a program can write a line to a pipe and wait for the
/// answer. (`FileHandle.read(upToCount:)` waits for the full count.)
struct InputPieces {
    private let path: String
    private let handle: FileHandle
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    init(_ path: String) throws {
        self.path = path
        guard path != "-" else {
            handle = .standardInput
            return
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unreadable(path) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// The next piece; nil at the end.
    mutating func next() throws -> ArraySlice<UInt8>? {
        while true {
            let count = Glibc.read(handle.fileDescriptor, &buffer, buffer.count)
            if count > 0 { return buffer[..<count] }
            guard count < 0 else { return nil }
            guard errno == EINTR else { throw Self.unreadable(path) }
        }
    }

    private static func unreadable(_ path: String) -> CommandFailure {
        CommandFailure(.impossible, "cannot read \(path): \(String(cString: strerror(errno)))")
    }
}
