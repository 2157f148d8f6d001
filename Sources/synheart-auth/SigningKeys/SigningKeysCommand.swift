import ArgumentParser
import AuthServer
import StrictJSON

/// The keys that sign device tokens.
struct SigningKeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing-keys", abstract: "List and rotate the keys that sign device tokens.",
        discussion: """
            A new key is published in the key set before it signs, and an old one for as long as a token of it is good. The
            first one is made when the key set or a token is first asked for.

              synheart-auth signing-keys rotate
              synheart-auth signing-keys list --json
            """,
        subcommands: [List.self, Rotate.self])

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(abstract: "List the keys, oldest first.")
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            output.list(
                try await administration.list(.listSigningKeys, "signing_keys"), columns: ["kid", "created_at"],
                empty: "no keys")
        }
    }

    struct Rotate: AdministrationCommand {
        static let configuration = CommandConfiguration(abstract: "Make a new key; it signs six minutes from now.")
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let made = try await administration.ask(.rotateSigningKeys)
            output.done("made \(made["kid"]?.string ?? "")", made)
        }
    }
}
