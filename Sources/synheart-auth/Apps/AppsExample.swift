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
                Channel staging, trusting the test kit's Apple and Google, so that `device register` and `simulate` work with it.
                For production set build_channel, your team id, your package and its certificate's digest, the keys that Play
                Console gives, and leave trust_anchors out.
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
        @OptionGroup var authorities: AuthorityOptions

        func run() async throws {
            try await reporting {
                let record = try Self.record(app: AppID(app), authorities)
                print(JSONValue.object(record).text(.pretty))
            }
        }

        /// A staging record that trusts these authorities. Its one secret is the test kit's.
        static func record(
            app: AppID, _ authorities: AuthorityOptions, allowsDevelopment: Bool = false
        ) throws -> JSONObject {
            let google = try authorities.google()
            let ios: JSONValue = [
                "app_ids": [.string("\(SoftwareDevice.team).\(app.text)")],
                "trust_anchors": [.string(try authorities.apple().rootsPEM)],
            ]
            let keys: JSONValue = [
                "decryption_key": .string(google.decryptionKey),
                "verification_key": .string(try google.verificationKey()),
            ]
            let android: JSONValue = [
                "packages": [.string(app.text)],
                "certificate_digests": [.string(Base64.url.encode(SimulatedAndroid.certificateDigest))],
                "proof": "either", "trust_anchors": [.string(try google.rootsPEM())],
                "play_integrity": ["keys": [keys]],
            ]
            let record: JSONValue = [
                "app_id": .string(app.text), "name": .string(app.text), "build_channel": "staging",
                "development_integrity_allowed": .bool(allowsDevelopment), "ios": ios, "android": android,
            ]
            return try AppRecord(JSONFields(record)).json(secrets: .plain)
        }
    }
}
