public import AttestationTestKit
internal import Foundation

/// The test kit's Apple in a file, private keys included: for one machine, never for production.
public enum AuthorityFile {
    /// The authority in the file; made where there is none.
    public static func load(_ path: String) throws -> AppleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try AppleAuthority(pem: String(contentsOfFile: path, encoding: .utf8))
        }
        // A day back, as Apple dates its own leaves, so that a clock that is a little behind still verifies.
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
        try Data(authority.pem.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return authority
    }
}
