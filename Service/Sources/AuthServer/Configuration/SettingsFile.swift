internal import Foundation

/// Reads a file that a setting names.
enum SettingsFile {
    /// Why a file cannot be read, as the end of a sentence that begins with its path.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    /// The contents of a file.
    ///
    /// - Parameters:
    ///   - path: a file, or something that can be read once, such as `/dev/fd/3`.
    ///   - limit: the most bytes that it may have.
    static func contents(of path: String, upTo limit: Int) throws(Unreadable) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable() }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable() }
            guard count > 0 else { return contents }
            contents += buffer[..<count]
            guard contents.count <= limit else { throw Unreadable(description: "has more than \(limit) bytes") }
        }
    }

    private static func unreadable() -> Unreadable {
        switch errno {
        case ENOENT, ENOTDIR: Unreadable(description: "does not exist")
        case EACCES, EPERM: Unreadable(description: "may not be read by this user")
        case EISDIR: Unreadable(description: "is a folder")
        default: Unreadable(description: "cannot be read: \(String(cString: strerror(errno)))")
        }
    }
}
