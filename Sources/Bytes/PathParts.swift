/// The folder and the name that a path consists of.
///
/// Used instead of `NSString.deletingLastPathComponent`, which in swift-corelibs-foundation traps on a name of one character.
public struct PathParts: Sendable, Hashable {
    /// The folder: `.` if the path names none, and `/` for the root.
    public let folder: String
    /// The last component; empty for the root and for an empty path.
    public let name: String

    /// Splits a path before its last component. Repeated slashes before and after this component have no effect, as in system calls.
    public init(_ path: String) {
        // Compares bytes: a slash and a combining mark after it are one `Character`, which does not equal a slash.
        let bytes = Array(path.utf8)
        let slash = UInt8(ascii: "/")
        let end = bytes.lastIndex { $0 != slash }.map { $0 + 1 } ?? 0
        let start = bytes[..<end].lastIndex(of: slash).map { $0 + 1 } ?? 0
        let folderEnd = bytes[..<start].lastIndex { $0 != slash }.map { $0 + 1 } ?? 0
        name = String(decoding: bytes[start..<end], as: UTF8.self)
        folder =
            folderEnd > 0
            ? String(decoding: bytes[..<folderEnd], as: UTF8.self) : bytes.first == slash ? "/" : "."
    }
}
