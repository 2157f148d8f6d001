package import AttestationTestKit
package import AuthContract
internal import Foundation
internal import StrictJSON
package import SynheartAuth

/// A phone for development: the real SDK over real HTTP, with its keys and records in a folder, attested by the test kit.
package struct SoftwareDevice: Sendable {
    /// The SDK, configured for this device.
    package let sdk: SynheartAuth
    private let configuration: SynheartAuth.Configuration
    /// The settings that the device was created with.
    package let settings: Settings

    /// The settings saved in the folder with the keys.
    package struct Settings: Sendable {
        /// The auth service.
        package let url: String
        package let appID: AppID
        /// The platform that the device simulates.
        package let platform: Platform
        /// Team id and bundle id.
        package let iosAppID: String

        /// Memberwise initializer.
        package init(url: String, appID: AppID, platform: Platform = .ios, iosAppID: String) {
            self.url = url
            self.appID = appID
            self.platform = platform
            self.iosAppID = iosAppID
        }
    }

    /// The team id of simulated apps.
    package static let team = "TESTTEAM01"

    /// A device whose files are in `directory`, attested by `authority`. It signs for the auth service and for `origins`.
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

    /// A device whose files are in `directory`, attested by `attestation`.
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
        // The SDK must not log, because standard error is for the command's own messages.
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

    /// Saves the settings in a folder. Creates the folder if it does not exist.
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
