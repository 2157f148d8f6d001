public import AttestationTestKit
internal import Foundation

/// The test kit's Apple and Google in files, private keys included: for one machine, never for production.
public enum AuthorityFile {
    /// The Apple in the file; made where there is none.
    public static func load(_ path: String) throws -> AppleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try AppleAuthority(pem: String(contentsOfFile: path, encoding: .utf8))
        }
        // A day back, as Apple dates its own leaves, so that a clock that is a little behind still verifies.
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
        try save(Data(authority.pem.utf8), path)
        return authority
    }

    /// The Google in the file, JSON; made where there is none.
    public static func google(_ path: String) throws -> GoogleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try JSONDecoder().decode(
                GoogleAuthority.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }
        let authority = try GoogleAuthority()
        try save(JSONEncoder().encode(authority), path)
        return authority
    }

    private static func save(_ content: Data, _ path: String) throws {
        try content.write(to: URL(fileURLWithPath: path), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }
}
