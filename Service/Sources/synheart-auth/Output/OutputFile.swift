import AuthContract
import Glibc

/// Writes a command's output to a file that only its owner can read.
enum OutputFile {
    static func write(_ text: String, to path: String) throws(CommandFailure) { try write(Array(text.utf8), to: path) }

    /// Writes bytes. A new file with mode 0600 atomically replaces an existing file, and readers that have the old file open see no
    /// change. If the path is a pipe or a device, the bytes are written into it.
    static func write(_ bytes: [UInt8], to path: String) throws(CommandFailure) {
        var about = stat()
        if stat(path, &about) == 0, about.st_mode & S_IFMT != S_IFREG {
            // Open it non-blocking, so that a named pipe without a reader is an error.
            return try writeThrough(bytes, to: path, O_WRONLY | O_NONBLOCK | O_NOCTTY)
        }
        let target = resolved(path)
        let temporary = "\(target).\(RandomUUID(from: SystemRandom()).text)"
        do throws(CommandFailure) {
            try writeThrough(bytes, to: temporary, O_WRONLY | O_CREAT | O_EXCL)
            guard rename(temporary, target) == 0 else { throw failure(path) }
        } catch {
            unlink(temporary)
            throw CommandFailure(error.kind, error.description.replacing(temporary, with: path))
        }
    }

    private static func writeThrough(_ bytes: [UInt8], to path: String, _ flags: Int32) throws(CommandFailure) {
        let descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        if let number = StandardStreams.write(bytes, to: descriptor) { throw failure(path, number) }
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw failure(path) }
    }

    /// The file at a path, with links resolved.
    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    private static func failure(_ path: String, _ number: Int32 = errno) -> CommandFailure {
        CommandFailure(.impossible, "cannot write \(path): \(String(cString: strerror(number)))")
    }
}
