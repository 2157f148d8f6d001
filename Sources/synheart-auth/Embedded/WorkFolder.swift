import AuthContract
import Foundation

/// A folder for a command's time, unless a name says that it stays.
func withFolder(_ kept: String?, named name: String, _ body: (String) async throws -> Void) async throws {
    let folder = kept ?? NSTemporaryDirectory() + "synheart-auth-\(name)-\(RandomUUID(from: SystemRandom()).text)"
    try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { if kept == nil { try? FileManager.default.removeItem(atPath: folder) } }
    try await body(folder)
}
