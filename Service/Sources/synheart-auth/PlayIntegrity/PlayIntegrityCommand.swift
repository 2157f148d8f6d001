import ArgumentParser
import PlayIntegrity
import StrictJSON

/// The commands for files of Play Console.
struct PlayIntegrityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "playintegrity", abstract: "Open files of Play Console.",
        discussion: """
              openssl genrsa -out private.pem 2048
              openssl rsa -in private.pem -pubout -out public.pem  # for Play Console
              synheart-auth playintegrity open-keys com.example.app.enc \\
                  --private-key private.pem
            """,
        subcommands: [OpenKeys.self])

    struct OpenKeys: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "open-keys",
            abstract: "Open the encrypted file of response keys; prints them as an app record takes them.",
            discussion: """
                The keys belong in android.play_integrity.keys. They are secrets: write them to a file, not a log.

                  synheart-auth playintegrity open-keys com.example.app.enc \\
                      --private-key private.pem > keys.json
                """)
        @Argument(help: "The .enc file that Play Console gave.") var file: String
        @Option(
            name: .customLong("private-key"), help: "The RSA private key, PEM, of the public key that was uploaded.")
        var privateKey: String

        func run() async throws {
            try await reporting {
                let encrypted = try InputFile.bytes(file)
                let pem = try InputFile.text(privateKey)
                let keys: ResponseKeys
                do throws(ResponseKeys.KeyError) {
                    keys = try ResponseKeys(encryptedFile: encrypted, privateKeyPEM: pem)
                } catch {
                    throw CommandFailure(
                        .refused, "\(error == .privateKey ? privateKey : file): \(error.rawValue)")
                }
                try StandardOutput.print(json: JSONValue.object(keys.exposed).text(.pretty))
            }
        }
    }
}
