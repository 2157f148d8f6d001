// swift-tools-version: 6.2
import PackageDescription

// A backend that verifies attestations and signed requests itself: the three verification libraries and Hummingbird, without
// the auth service. In a package of your own, depend on synheart-auth by its URL.
let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil
let settings: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

let package = Package(
    name: "example-server",
    platforms: [.macOS(.v14)],
    dependencies: [
        .package(name: "synheart-auth", path: "../.."),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        // Without its traits Hummingbird needs no swift-configuration.
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: []),
    ],
    targets: [
        .target(
            name: "ExampleServer",
            dependencies: [
                .product(name: "AppAttest", package: "synheart-auth"),
                .product(name: "PlayIntegrity", package: "synheart-auth"),
                .product(name: "AndroidKeyAttestation", package: "synheart-auth"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ],
            swiftSettings: settings),
        .executableTarget(name: "example-server", dependencies: ["ExampleServer"], swiftSettings: settings),
        .testTarget(
            name: "ExampleServerTests",
            dependencies: ["ExampleServer", .product(name: "AttestationTestKit", package: "synheart-auth")],
            swiftSettings: settings),
    ])
