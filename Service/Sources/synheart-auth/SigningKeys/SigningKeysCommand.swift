import ArgumentParser
import AuthServer
import StrictJSON

/// The keys that sign device tokens.
struct SigningKeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing-keys", abstract: "List, rotate and revoke the keys that sign device tokens.",
        discussion: """
            One key signs. The newest key is the standby, which is published ahead. A rotation adds a new standby, and the \
            previous standby signs. An old key stays published until its last token expires. A revoked key leaves the key set at \
            once, which ends its tokens. The first request for the key set or a token creates the first keys.

              synheart-auth signing-keys rotate
              synheart-auth signing-keys list --json
            """,
        subcommands: [List.self, Rotate.self, Revoke.self])

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys, oldest first.",
            discussion: """
                  synheart-auth signing-keys list --json
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.list(
                try await administration.list(.listSigningKeys, "signing_keys"), columns: ["kid", "use", "created_at"],
                empty: "no keys")
        }
    }

    struct Rotate: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a new standby key; the standby before it signs from now on.",
            discussion: """
                A standby that is younger than six minutes signs once it is that old.

                  synheart-auth signing-keys rotate
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let made = try await administration.ask(.rotateSigningKeys)
            try output.done("made \(made["kid"]?.string ?? "")", made)
        }
    }

    struct Revoke: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a key: it leaves the key set at once, and the standby key signs.",
            discussion: """
                A backend refuses its tokens once it reads the key set again; it may cache the set for five minutes.

                  synheart-auth signing-keys revoke 1f0c2a9d7e6b4c35
                """)
        @Argument(help: "The key's kid.") var kid: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.revokeSigningKey, ["kid": kid])
            try output.done("revoked \(kid)", JSONObject([("kid", .string(kid)), ("revoked", true)]))
        }
    }
}
