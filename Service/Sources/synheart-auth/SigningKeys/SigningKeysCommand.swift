import ArgumentParser
import AuthServer
import StrictJSON

/// The commands for the keys that sign device tokens.
struct SigningKeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing-keys", abstract: "List, rotate and revoke the keys that sign device tokens.",
        discussion: """
            One key signs. Newer keys are standbys: backends read them in the key set before they sign. `rotate` adds a standby. The \
            standby before it signs once it has been published for six minutes. A key that no longer signs stays published until \
            its last token has expired. `revoke` removes a key from the key set at once, which ends its tokens. If it was the \
            signing key, the next standby signs at once.

            No key is rotated by itself. The first token, the first request for the key set and the first `rotate` create a \
            signing key and a standby.

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
            abstract: "Add a standby key; the standby before it signs.",
            discussion: """
                The standby before it signs at once if it has been published for six minutes, else once it has.

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
            abstract: "Revoke a key: it leaves the key set at once, for good.",
            discussion: """
                If it was the signing key, the next standby signs at once. If it was a standby, a new one takes its place. A \
                backend refuses the key's tokens once it reads the key set again; it may cache the set for five minutes. Revoking a \
                key twice is no error.

                  synheart-auth signing-keys revoke zSeeRQAo_IDQFCHm7WKqlJu_0ngppFxmtBBuzQY-9wk
                """)
        @Argument(help: "The key's kid, as `list` prints it.") var kid: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.revokeSigningKey, ["kid": kid])
            try output.done("revoked \(kid)", JSONObject([("kid", .string(kid)), ("revoked", true)]))
        }
    }
}
