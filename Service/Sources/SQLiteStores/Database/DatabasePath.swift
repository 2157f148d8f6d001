internal import AuthService
internal import Bytes
internal import Foundation

/// The path of a database file with every symbolic link resolved.
///
/// The key file, the claim journal and the service's lock are next to the database, so their names must be derived from its real
/// path. Under a second name of the database, a second service would have a separate lock and journal.
enum DatabasePath {
    /// The number of links that Linux follows.
    private static let maximumLinks = 40

    /// Resolves every link of a path. The file need not exist, but its folder must.
    static func resolve(_ path: String) throws(StoreOpenError) -> String {
        var path = path
        for _ in 0..<maximumLinks {
            if let real = realPath(path) { return real }
            guard errno == ENOENT else {
                throw StoreOpenError(.notReadable, "\(path) cannot be resolved: \(SystemError.current).")
            }
            let parts = PathParts(path)
            guard let realFolder = realPath(parts.folder) else {
                throw StoreOpenError(
                    .noSuchFolder, "The folder \(parts.folder) does not exist. Create it, or name another file.")
            }
            let file = realFolder + (realFolder.hasSuffix("/") ? "" : "/") + parts.name
            // The link's target does not exist. Follow the link anyway: opening the link would create the target.
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: file) else { return file }
            path = target.hasPrefix("/") ? target : "\(realFolder)/\(target)"
        }
        throw StoreOpenError(.notReadable, "\(path) leads through too many links.")
    }

    /// Whether there is a database: a file that is not empty.
    static func hasContent(_ path: String) -> Bool { (FileStatus(path)?.size ?? 0) > 0 }

    /// Refuses anything except a regular file with one name. A missing file is not refused.
    ///
    /// A second hard link is a second name that cannot be resolved.
    static func checkKind(_ path: String) throws(StoreOpenError) {
        guard let status = FileStatus(path) else { return }
        guard !status.isFolder else { throw StoreOpenError(.notADatabase, "\(path) is a folder. Name a file.") }
        guard status.isRegular else {
            throw StoreOpenError(.notADatabase, "\(path) is no regular file. Name another file.")
        }
        guard status.hardLinks <= 1 else {
            throw StoreOpenError(
                .severalNames,
                "\(path) has \(status.hardLinks) hard links, so two services could use it at once. Remove the other names."
            )
        }
    }

    private static func realPath(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }
}
