internal import Foundation

/// Reads a file that a setting names.
enum SettingsFile {
    /// The reason why a file cannot be read, as the end of a sentence that begins with its path.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    /// The contents of a file.
    ///
    /// - Parameters:
    ///   - path: a file, or a source that can be read only once, such as `/dev/fd/3`.
    ///   - limit: the largest size, in bytes.
    static func contents(of path: String, upTo limit: Int) throws(Unreadable) -> [UInt8] {
        do throws(FileContents.Failure) {
            return try FileContents.read(path, maximum: limit)
        } catch {
            throw Unreadable(error)
        }
    }
}

extension SettingsFile.Unreadable {
    fileprivate init(_ failure: FileContents.Failure) {
        description =
            switch failure.code {
            case ENOENT, ENOTDIR: "does not exist"
            case EACCES, EPERM: "may not be read by this user"
            case EISDIR: "is a folder"
            default: "cannot be read: \(failure)"
            }
    }
}
