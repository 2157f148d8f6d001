package import AttestationTestKit
package import AuthContract
internal import Foundation
internal import StrictJSON
package import SynheartAuth

/// A phone for development: the real SDK over real HTTP, its keys and its record in a folder, attested by the test kit.
package struct SoftwareDevice: Sendable {
    /// The SDK, configured for this device.
    package let sdk: SynheartAuth
    private let configuration: SynheartAuth.Configuration
    /// What the device was set up with.
    package let settings: Settings

    /// What is kept in the folder beside the keys.
    package struct Settings: Sendable {
        /// The auth service.
        package let url: String
        package let appID: AppID
        /// Which phone it plays.
        package let platform: Platform
        /// Team id and bundle id.
        package let iosAppID: String

        /// Settings of their parts.
        package init(url: String, appID: AppID, platform: Platform = .ios, iosAppID: String) {
            self.url = url
            self.appID = appID
            self.platform = platform
            self.iosAppID = iosAppID
        }
    }

    /// The team that simulated apps belong to.
    package static let team = "TESTTEAM01"

    /// A device in `directory`, attested by `authority`, that signs for the auth service and for these origins.
    package init(
        directory: String, settings: Settings, authority: AppleAuthority, origins: Set<RequestOrigin> = [],
        scheme: SignatureScheme = .one
    ) throws {
        try self.init(
            directory: directory, settings: settings,
            attestation: SimulatedAppAttest(
                iosAppID: settings.iosAppID, authority: authority, directory: directory + "/app-attest"),
            origins: origins, scheme: scheme)
    }

    /// A device in `directory`, attested in this way.
    package init(
        directory: String, settings: Settings, attestation: any AttestationProvider,
        origins: Set<RequestOrigin> = [], scheme: SignatureScheme = .one
    ) throws {
        var configuration = try SynheartAuth.Configuration(baseUrl: settings.url)
        configuration.storage = FileStorage(directory: directory)
        configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
        configuration.attestation = attestation
        configuration.origins = origins
        configuration.scheme = scheme
        // Standard error is for what the command says.
        configuration.logger = SilentLogger()
        sdk = SynheartAuth(configuration)
        self.configuration = configuration
        self.settings = settings
    }

    /// The SDK of the same device, configured for scheme 2.
    package var sdkOfSchemeTwo: SynheartAuth {
        var configuration = configuration
        configuration.scheme = .two
        return SynheartAuth(configuration)
    }
}

extension SoftwareDevice.Settings {
    private static func file(_ directory: String) -> String { directory + "/device.json" }

    /// The settings saved in a folder; nil if there are none.
    package static func load(_ directory: String) throws -> Self? {
        guard FileManager.default.fileExists(atPath: file(directory)) else { return nil }
        let fields = try JSONFields(
            JSONValue(parsing: Array(try Data(contentsOf: URL(fileURLWithPath: file(directory))))))
        return Self(
            url: try fields.string("url"), appID: try fields.parsed("app_id") { try AppID($0) },
            platform: try fields.optionalChoice("platform") ?? .ios, iosAppID: try fields.string("ios_app_id"))
    }

    /// Saves the settings in a folder, which is made if it is not there.
    package func save(_ directory: String) throws {
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let json = JSONObject([
            ("url", .string(url)), ("app_id", .string(appID.text)), ("platform", .string(platform.rawValue)),
            ("ios_app_id", .string(iosAppID)),
        ])
        try Data((JSONValue.object(json).text(.pretty) + "\n").utf8)
            .write(to: URL(fileURLWithPath: Self.file(directory)), options: .atomic)
    }
}
