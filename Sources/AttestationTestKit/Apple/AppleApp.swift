/// The app on a simulated device. The device's attestations name this app.
public struct AppleApp: Sendable {
    /// The two environments of App Attest.
    public enum Environment: Sendable {
        /// The sandbox: the AAGUID is `appattestdevelop`.
        case development
        /// The AAGUID is `appattest` and seven zero bytes.
        case production
    }

    /// Prefix and bundle id, such as `TEAMID1234.com.example.app`.
    public var appID: String
    /// The environment of App Attest that the key belongs to.
    public var environment: Environment
    /// `apple_validation_category_01`, from iOS 27 and macOS 27 on: 4 is the App Store.
    public var category: UInt32?
    /// `apple_bundle_version_01`, from iOS 27 and macOS 27 on.
    public var bundleVersion: String?

    /// An app; by default one from the App Store.
    public init(
        appID: String, environment: Environment = .production, category: UInt32? = 4, bundleVersion: String? = "1"
    ) {
        self.appID = appID
        self.environment = environment
        self.category = category
        self.bundleVersion = bundleVersion
    }

    var aaguid: [UInt8] {
        switch environment {
        case .development: Array("appattestdevelop".utf8)
        case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        }
    }

    var receiptEnvironment: String {
        switch environment {
        case .development: "sandbox"
        case .production: "production"
        }
    }
}
