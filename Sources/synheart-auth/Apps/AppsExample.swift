import ArgumentParser
import AttestationTestKit
import AuthContract
import AuthService
import SoftwareDevice
import StrictJSON

extension AppsCommand {
    /// Prints a record to start from.
    struct Example: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print an app record to start from.",
            discussion: """
                Channel staging, trusting the test kit's authority, so that `device register` works with it. For production set
                build_channel, your team id, and leave trust_anchors out.
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
        @Option(help: "The test kit's authority; made where there is none.") var authority = "synheart-authority.pem"

        func run() async throws {
            try await reporting {
                let record = try Self.record(app: AppID(app), anchors: try AuthorityFile.load(authority).rootsPEM)
                print(JSONValue.object(record).text(.pretty))
            }
        }

        /// A staging record that trusts these roots.
        static func record(app: AppID, anchors: String) throws -> JSONObject {
            let ios = JSONObject([
                ("app_ids", .array([.string("\(SoftwareDevice.team).\(app.text)")])),
                ("trust_anchors", .array([.string(anchors)])),
            ])
            let record = JSONObject([
                ("app_id", .string(app.text)), ("name", .string(app.text)), ("build_channel", "staging"),
                ("ios", .object(ios)),
            ])
            return try AppRecord(JSONFields(.object(record))).json(secrets: .masked)
        }
    }
}
