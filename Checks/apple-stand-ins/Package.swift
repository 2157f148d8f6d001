// swift-tools-version: 6.2
// Compiles and runs the SDK's Apple sources and the iOS half of the Flutter plugin on Linux, against stand-ins for the frameworks that
// they import.
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil
let strictSettings = settings + (strict ? [.treatAllWarnings(as: .error)] : [])
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let frameworks: [Target.Dependency] = ["CryptoKit", "DeviceCheck", "LocalAuthentication", "Security", "os"]

let package = Package(
    name: "apple-stand-ins",
    dependencies: [.package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2")],
    targets: [
        .target(name: "Security", dependencies: [crypto]), .target(name: "DeviceCheck"),
        .target(name: "LocalAuthentication"), .target(name: "os"), .target(name: "CryptoKit", dependencies: [crypto]),
        .target(name: "CSynheartAuth"), .target(name: "Bytes", swiftSettings: strictSettings),
        .target(name: "StrictJSON", dependencies: ["Bytes"], swiftSettings: strictSettings),
        .target(name: "AuthContract", dependencies: ["Bytes", "StrictJSON", crypto], swiftSettings: strictSettings),
        .target(
            name: "SynheartAuth",
            dependencies: ["CSynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto] + frameworks,
            exclude: ["PrivacyInfo.xcprivacy"],
            swiftSettings: strictSettings),
        .target(name: "TestHelpers", swiftSettings: settings),
        .testTarget(
            name: "SynheartAuthAppleTests",
            dependencies: ["TestHelpers", "SynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto] + frameworks,
            swiftSettings: settings),
        // The Flutter plugin and the targets that it needs.
        .target(
            name: "SynheartAuthTestSupport", dependencies: ["SynheartAuth", "AuthContract", "Bytes"],
            swiftSettings: strictSettings),
        // Flutter's framework is not annotated for Swift 6.
        .target(name: "Flutter", swiftSettings: strictSettings + [.swiftLanguageMode(.v5)]),
        .target(
            name: "synheart_auth", dependencies: ["Flutter", "SynheartAuth", "AuthContract"],
            swiftSettings: strictSettings),
        .testTarget(
            name: "SynheartAuthPluginTests",
            dependencies: ["synheart_auth", "Flutter", "SynheartAuth", "SynheartAuthTestSupport", "AuthContract"],
            swiftSettings: strictSettings),
    ],
    swiftLanguageModes: [.v6]
)
