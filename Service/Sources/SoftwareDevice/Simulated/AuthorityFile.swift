package import AttestationTestKit
internal import Foundation

/// The test kit's Apple and Google in files, private keys included: for one machine, never for production.
package enum AuthorityFile {
    /// The Apple in the file; made if there is none.
    package static func load(_ path: String) throws -> AppleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try AppleAuthority(pem: String(contentsOfFile: path, encoding: .utf8))
        }
        // A day back, as Apple dates its own leaves, so that a clock that is a little behind still verifies.
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
        // Another process may make it at the same time: then both have the first one's.
        return try PrivateFile.make(Data(authority.pem.utf8), at: path) ? authority : load(path)
    }

    /// The Google in the file, JSON; made if there is none.
    package static func google(_ path: String) throws -> GoogleAuthority {
        if FileManager.default.fileExists(atPath: path) {
            return try JSONDecoder().decode(
                GoogleAuthority.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }
        let authority = try GoogleAuthority()
        return try PrivateFile.make(JSONEncoder().encode(authority), at: path) ? authority : google(path)
    }
}
