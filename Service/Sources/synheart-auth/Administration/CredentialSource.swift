import AuthContract
import AuthServer
import AuthService
import Foundation

/// The source of a credential: a file or the environment, never the command line, which every process can read.
enum CredentialSource {
    private static let variable = ConfigurationKey.prefix + "CREDENTIAL"

    /// The credential in the file, else in the environment, else in the file that the environment names.
    ///
    /// - Parameters:
    ///   - user: the flag or command that needs the credential, for the error.
    ///   - role: the required role, for the error.
    static func credential(
        file: String?, environment: [String: String], for user: String = "--url", role: String = "admin"
    ) throws -> Secret {
        if let file { return try read(file, namedBy: "--credential-file") }
        if let text = environment[variable] { return try check(text, variable) }
        if let file = environment[variable + "_FILE"] { return try read(file, namedBy: variable + "_FILE") }
        throw CommandFailure(
            .impossible,
            "\(user) needs a credential: set \(variable) or name a file with --credential-file; "
                + "`credentials create --role \(role)` beside the database makes one")
    }

    private static func read(_ file: String, namedBy place: String) throws -> Secret {
        try check(try InputFile.secret(file, namedBy: place), "the file that \(place) names")
    }

    private static func check(_ text: String, _ place: String) throws -> Secret {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard (1...256).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure(.impossible, "\(place) holds no credential: it is one word that begins with sya_")
        }
        return Secret(text)
    }
}
