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

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Make a credential and show its text, once.")
        @Option(help: "What it is for, or whose it is.") var name: String
        @Option(help: "service, viewer, operator or admin.") var role: String
        @Option(
            name: .customLong("app"), help: "An app that it is for; may be repeated. Without: all, but for service.")
        var apps: [String] = []
        @Option(help: "Days until it expires.") var days: Int64 = 90
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                guard let role = CredentialRole(rawValue: role) else {
                    throw ValidationError(
                        "--role is one of \(CredentialRole.allCases.map(\.rawValue).joined(separator: ", "))")
                }
                guard (1...3660).contains(days) else { throw ValidationError("--days is a number from 1 to 3660") }
                let (credential, text) = try await database.open().credentials.create(
                    name: name, role: role, apps: Set(try apps.map { try AppID($0) }), life: days * 86_400, actor: "cli"
                )
                var object = credential.administrationJSON
                object["credential"] = .string(text.exposed)
                output.show(object)
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List credentials, newest first; never their texts.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let credentials = try await database.administration().credentials.list()
                output.list(
                    credentials.map(\.administrationJSON),
                    columns: ["id", "name", "role", "apps", "expires_at", "revoked_at"],
                    empty: "no credentials: make one with `credentials create`")
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a credential, for ever.")
        @Argument(help: "The credential's id, as in the list.") var id: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                guard try await database.administration().credentials.revoke(id, actor: "cli") else {
                    throw CommandFailure(.refused, "there is no credential \(id), or it was revoked before")
                }
                output.done("revoked \(id)", JSONObject([("id", .string(id)), ("revoked", true)]))
            }
        }
    }
}
