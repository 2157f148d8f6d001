import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import StrictJSON

/// Credentials of services and operators.
struct CredentialsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials", abstract: "Make, list and revoke credentials of services and operators.",
        discussion: """
            A service credential asks /auth/v1/verify about the requests of its apps; a viewer, operator or admin credential
            uses the admin API. The text is shown once.

              synheart-auth credentials create --name ingest --role service --app com.example.app
              synheart-auth credentials create --name alice --role admin --days 30
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AdministrationCommand {
        static let configuration = CommandConfiguration(abstract: "Make a credential and show its text, once.")
        static let makesDatabase = true
        @Option(help: "What it is for, or whose it is.") var name: String
        @Option(help: "service, viewer, operator or admin.") var role: String
        @Option(
            name: .customLong("app"), help: "An app that it is for; may be repeated. Without: all, but for service.")
        var apps: [String] = []
        @Option(help: "Days until it expires.") var days: Int64 = 90
        @OptionGroup var options: AdministrationOptions

        func validate() throws {
            guard (1...3660).contains(days) else { throw ValidationError("--days is a number from 1 to 3660") }
        }

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let created = try await administration.ask(
                .createCredential,
                body: JSONObject([
                    ("name", .string(name)), ("role", .string(role)), ("apps", .array(apps.map { .string($0) })),
                    ("expires_in_seconds", .integer(days * 86_400)),
                ]))
            output.show(created)
        }
    }

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(abstract: "List credentials, newest first; never their texts.")
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            output.list(
                try await administration.list(.listCredentials, "credentials"),
                columns: ["id", "name", "role", "apps", "expires_at", "revoked_at"],
                empty: "no credentials: make one with `credentials create`")
        }
    }

    struct Revoke: AdministrationCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a credential, for ever.")
        @Argument(help: "The credential's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.revokeCredential, ["credential_id": id])
            output.done("revoked \(id)", JSONObject([("id", .string(id)), ("revoked", true)]))
        }
    }
}
