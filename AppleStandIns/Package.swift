// swift-tools-version: 6.2
// Compiles and runs the SDK's Apple sources on Linux, against stand-ins for the four frameworks that they import.
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let frameworks: [Target.Dependency] = ["CryptoKit", "DeviceCheck", "LocalAuthentication", "Security", "os"]

let package = Package(
    name: "AppleStandIns",
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
            exclude: ["PrivacyInfo.xcprivacy"],
            swiftSettings: settings),
        .testTarget(
            name: "SynheartAuthAppleTests",
            dependencies: ["SynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto] + frameworks,
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
