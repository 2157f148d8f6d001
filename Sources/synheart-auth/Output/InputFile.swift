import Foundation
import StrictJSON

/// Reads what a command line names: a file, or `-` for standard input.
enum InputFile {
    static func bytes(_ path: String) throws -> [UInt8] {
        if path == "-" { return Array(FileHandle.standardInput.readDataToEndOfFile()) }
        do {
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw CommandFailure(.impossible, "cannot read \(path): \(error.localizedDescription)")
        }
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

    static func json(_ path: String) throws -> JSONValue {
        do {
            return try JSONValue(parsing: try bytes(path), limits: .init(bytes: 64 << 20, depth: 32))
        } catch let error as JSONError {
            throw CommandFailure(.impossible, "\(path): \(error)")
        }
    }
}
