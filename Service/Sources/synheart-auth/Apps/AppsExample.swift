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
                The record is for channel staging and trusts the test kit's Apple and Google, so that `device register` and \
                `simulate` work with it. With --production it trusts only Apple and Google, and has no secret of a test kit. Replace \
                the team id, the package and the certificate's digest, and add play_integrity.keys or a service_account from Play \
                Console. `apps add` also accepts it unchanged, but then no token of an Android phone can be opened.

                  synheart-auth apps example > app.json
                  synheart-auth apps example --app com.acme.pay --authority authority.pem
                  synheart-auth apps example --production > app.json
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
        @Flag(help: "A record for production, with placeholders for what is yours.") var production = false
        @OptionGroup var authorities: AuthorityOptions

        func run() async throws {
            try await reporting {
                let app = try AppID(app)
                let record = production ? try Self.productionRecord(app: app) : try Self.record(app: app, authorities)
                try StandardOutput.print(json: JSONValue.object(record).text(.pretty))
            }
        }

        /// A production record whose placeholders must be replaced.
        static func productionRecord(app: AppID) throws -> JSONObject {
            let record: JSONValue = [
                "app_id": .string(app.text), "name": .string(app.text),
                "ios": ["app_ids": [.string("TEAMID1234.\(app.text)")]],
                "android": [
                    "packages": [.string(app.text)],
                    "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 0, count: 32)))],
                ],
            ]
            return try AppRecord(JSONFields(record)).json(secrets: .plain)
        }

        /// A staging record that trusts these authorities. Its only secret is the test kit's decryption key.
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
