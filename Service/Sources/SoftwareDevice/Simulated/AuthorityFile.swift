package import AttestationTestKit
internal import Foundation

/// Files with the test kit's Apple and Google authorities and their private keys. They are for one machine, never for
/// production.
package enum AuthorityFile {
    /// Reads the Apple authority from its file. Creates the file if it does not exist.
    package static func load(_ path: String) throws -> AppleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try AppleAuthority(pem: String(contentsOfFile: path, encoding: .utf8))
        }
        // The authority is dated two days ago, because leaf certificates are dated a day before the attestation, like Apple's,
        // and a clock may be a little behind.
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
        // Another process may create the file at the same time. In that case, both processes use the authority in the file.
        return try PrivateFile.make(Data(authority.pem.utf8), at: path) ? authority : load(path)
    }

    /// Reads the Google authority from its JSON file. Creates the file if it does not exist.
    package static func google(_ path: String) throws -> GoogleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try JSONDecoder().decode(
                GoogleAuthority.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }
        let authority = try GoogleAuthority()
        return try PrivateFile.make(JSONEncoder().encode(authority), at: path) ? authority : google(path)
    }
}
