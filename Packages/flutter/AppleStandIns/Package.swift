// swift-tools-version: 6.2
// Compiles and runs the plugin's iOS half on Linux: against stand-ins for Flutter and for Apple's frameworks.
import PackageDescription

let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let frameworks: [Target.Dependency] = ["CryptoKit", "DeviceCheck", "LocalAuthentication", "Security", "os"]

let package = Package(
    name: "FlutterAppleStandIns",
    dependencies: [.package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2")],
    targets: [
        .target(name: "Security", dependencies: [crypto]), .target(name: "DeviceCheck"),
        .target(name: "LocalAuthentication"), .target(name: "os"), .target(name: "CryptoKit", dependencies: [crypto]),
        .target(name: "CSynheartAuth"), .target(name: "Bytes", swiftSettings: settings),
        .target(name: "StrictJSON", dependencies: ["Bytes"], swiftSettings: settings),
        .target(name: "AuthContract", dependencies: ["Bytes", "StrictJSON", crypto], swiftSettings: settings),
        .target(
            name: "SynheartAuth",
            dependencies: ["CSynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto] + frameworks,
            exclude: ["PrivacyInfo.xcprivacy"], swiftSettings: settings),
        .target(
            name: "SynheartAuthTestSupport", dependencies: ["SynheartAuth", "AuthContract", "Bytes"],
            swiftSettings: settings),
        // Flutter's framework knows nothing of Swift 6.
        .target(name: "Flutter", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .target(
            name: "synheart_auth", dependencies: ["Flutter", "SynheartAuth", "AuthContract"], swiftSettings: settings),
        .testTarget(
            name: "SynheartAuthPluginTests",
            dependencies: ["synheart_auth", "Flutter", "SynheartAuth", "SynheartAuthTestSupport", "AuthContract"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
