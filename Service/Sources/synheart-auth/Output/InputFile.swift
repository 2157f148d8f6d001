import AuthServer
import Glibc
import StrictJSON

/// Reads an input of the command line: a file, or `-` for standard input.
enum InputFile {
    private static let maximum = 64 << 20

    /// The bytes of the file.
    static func bytes(_ path: String, maximum: Int = maximum) throws -> [UInt8] {
        do throws(FileContents.Failure) {
            guard path != "-" else { return try FileContents.read(descriptor: STDIN_FILENO, maximum: maximum) }
            return try FileContents.read(path, maximum: maximum)
        } catch {
            throw CommandFailure(.impossible, "cannot read \(path == "-" ? "standard input" : path): \(error)")
        }
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

    /// A secret in a file.
    ///
    /// - Parameter place: the option or variable with the path. Errors do not show the path: it may be the secret itself, given
    ///   by mistake.
    static func secret(_ path: String, namedBy place: String) throws -> String {
        do throws(FileContents.Failure) {
            return String(decoding: try FileContents.read(path, maximum: 1 << 16), as: UTF8.self)
        } catch {
            throw CommandFailure(.impossible, "the file that \(place) names cannot be read: \(error)")
        }
    }

    static func json(_ path: String) throws -> JSONValue {
        do {
            return try JSONValue(parsing: try bytes(path), limits: .init(bytes: maximum, depth: 32))
        } catch let error as JSONError {
            throw CommandFailure(.impossible, "\(path): \(error)")
        }
    }
}
