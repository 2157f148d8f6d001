import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import StrictJSON

/// The commands for credentials of services and operators.
struct CredentialsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials", abstract: "Make, list and revoke credentials of services and operators.",
        discussion: """
            A service credential is for /auth/v1/verify, forward authentication and some apps; a viewer, operator or admin \
            credential is for the admin API. The text is shown once.

              synheart-auth credentials create --role service --app com.example.app
              synheart-auth credentials create --name alice --role admin --days 30
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a credential and show its text, once.",
            discussion: """
                If the text cannot be written, the credential is revoked at once.

                  synheart-auth credentials create --role service --app com.example.app
                  synheart-auth credentials create --name gateway --role service \\
                      --app com.example.app --body whole
                  synheart-auth credentials create --name alice --role admin --days 30 \\
                      --json > credential.json
                """)
        static let makesDatabase = true
        @Option(help: "Its purpose or its owner. Default: the role.") var name: String?
        @Option(help: "service, viewer, operator or admin.") var role: String
        @Option(
            name: .customLong("app"),
            help: "An app that it is for; may be repeated. Default: all apps; role service must name them.")
        var apps: [String] = []
        @Option(
            help: """
                What the gateway that uses it forwards of bodies, for forward authentication: whole, headers (none), or \
                digest (none, and the backend checks Content-Digest). Default: headers.
                """)
        var body: String?
        @Option(help: "Days until it expires.") var days: Int64 = 90
        @OptionGroup var options: AdministrationOptions

        func validate() throws {
            guard (1...3660).contains(days) else { throw ValidationError("--days is a number from 1 to 3660") }
        }

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            var members = JSONObject([
                ("name", .string(name ?? role)), ("role", .string(role)),
                apps.isEmpty ? ("all_apps", true) : ("apps", .array(apps.map { .string($0) })),
                ("expires_in_seconds", .integer(days * 86_400)),
            ])
            if let body { members["body"] = .string(body) }
            let created = try await administration.askForSecret(
                .createCredential, body: members, ofA: "credential", listedBy: "credentials list")
            do throws(CommandFailure) {
                try output.show(created)
                try StandardOutput.synchronize()
            } catch {
                try await withdraw(created, from: administration, because: error)
            }
        }

        /// Revokes a credential that could not be printed: its text is lost, so it is of no use.
        private func withdraw(
            _ credential: JSONObject, from administration: any Administration, because loss: CommandFailure
        ) async throws {
            let id = credential["id"]?.string ?? ""
            do {
                _ = try await administration.ask(.revokeCredential, ["credential_id": id])
            } catch {
                throw CommandFailure(
                    loss.kind,
                    "\(loss.description); credential \(id) could not be revoked (\(error)): revoke it with "
                        + "`credentials revoke \(id)`")
            }
            throw CommandFailure(
                loss.kind, "\(loss.description); credential \(id) is revoked, because it was not printed")
        }
    }

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List credentials, newest first; never their texts.",
            discussion: """
                  synheart-auth credentials list
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.list(
                try await administration.list(.listCredentials, "credentials"),
                columns: ["id", "name", "role", "apps", "body", "expires_at", "revoked_at"],
                empty: "no credentials: make one with `credentials create`")
        }
    }

    struct Revoke: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a credential for good.",
            discussion: """
                  synheart-auth credentials revoke 0f554c442940d5d2
                """)
        @Argument(help: "The credential's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.revokeCredential, ["credential_id": id])
            try output.done("revoked \(id)", JSONObject([("id", .string(id)), ("revoked", true)]))
        }
    }
}
