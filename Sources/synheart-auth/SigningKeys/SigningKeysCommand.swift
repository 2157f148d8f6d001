import ArgumentParser
import AuthContract
import AuthService
import StrictJSON

/// The keys that sign device tokens.
struct SigningKeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing-keys", abstract: "List and rotate the keys that sign device tokens.",
        discussion: """
            A new key is published in the key set before it signs, and an old one for as long as a token of it is good.

              synheart-auth signing-keys rotate
              synheart-auth signing-keys list --json
            """,
        subcommands: [List.self, Rotate.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the published keys.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let set = try await database.administration().signingKeys.keySet()
                output.list(
                    (set["keys"]?.array ?? []).compactMap(\.object), columns: ["kid", "kty", "crv", "alg"],
                    empty: "no keys")
            }
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Make a new key; it signs six minutes from now.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let id = try await database.administration().signingKeys.rotate(actor: "cli")
                output.done("made \(id)", JSONObject([("kid", .string(id))]))
            }
        }
    }
}
