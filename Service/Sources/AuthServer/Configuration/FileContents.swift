internal import Foundation

/// Reads whole files that a person names: regular files, pipes such as `<(…)` and `/dev/fd/3`, devices. The size is bounded,
/// and a named pipe without a writer is an error, not a hang.
package enum FileContents {
    /// The reason why a file cannot be read. The text has no path: the caller knows it, and a secret may have been given as the
    /// path by mistake.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package let description: String
        /// The system's error, if there is one.
        var code: Int32?

        static var ofSystem: Failure { Failure(description: String(cString: strerror(errno)), code: errno) }
    }

    /// The longest wait for the first byte of a named pipe.
    private static let timeoutMilliseconds: Int32 = 5000

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - maximum: the largest size, in bytes.
    package static func read(_ path: String, maximum: Int) throws(Failure) -> [UInt8] {
        // Open the file non-blocking, because `open` would otherwise wait for the writer of a named pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw .ofSystem }
        defer { close(descriptor) }
        try awaitWriter(of: descriptor, path)
        guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK) == 0 else { throw .ofSystem }
        return try read(descriptor: descriptor, maximum: maximum)
    }

    /// Whether a path is neither a regular file nor a folder but, for example, a pipe, which can be read only once.
    package static func isReadOnce(_ path: String) -> Bool {
        var about = stat()
        return stat(path, &about) == 0 && ![S_IFREG, S_IFDIR].contains(about.st_mode & S_IFMT)
    }

    /// Reads an open file to its end.
    package static func read(descriptor: Int32, maximum: Int) throws(Failure) -> [UInt8] {
        var (contents, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count == 0 { return contents }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .ofSystem }
            contents += buffer[..<count]
            guard contents.count <= maximum else {
                throw Failure(description: "it is larger than \(maximum >> 10) KiB")
            }
        }
    }

    private static func awaitWriter(of descriptor: Int32, _ path: String) throws(Failure) {
        var about = stat()
        guard fstat(descriptor, &about) == 0 else { throw .ofSystem }
        // A pipe that was already open has a writer or is at its end. A slow writer is not an error.
        let wasOpen = ["/dev/fd/", "/proc/", "/dev/stdin"].contains { path.hasPrefix($0) }
        guard about.st_mode & S_IFMT == S_IFIFO, !wasOpen else { return }
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let ready = poll(&state, 1, timeoutMilliseconds)
        guard ready != 0 else {
            throw Failure(description: "it is a named pipe, and nothing was written to it for 5 s")
        }
        guard ready > 0 else { throw .ofSystem }
    }
}
