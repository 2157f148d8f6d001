import Foundation
import Glibc

/// Writes what a command was asked to write to a file, for its owner alone.
enum OutputFile {
    static func write(_ text: String, to path: String) throws {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw CommandFailure(.impossible, "cannot write \(path): \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do { try handle.write(contentsOf: Data(text.utf8)) } catch {
            throw CommandFailure(.impossible, "cannot write \(path): \(error.localizedDescription)")
        }
    }
}
