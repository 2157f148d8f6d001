// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that users of the libraries never build it.
let house =
    [
        "SynheartAuth", "AppAttest", "PlayIntegrity", "AndroidKeyAttestation", "AuthContract", "AttestationTestKit",
        "StrictJSON",
    ].map { Target.Dependency.product(name: $0, package: "synheart-auth") }
    + ["AuthService", "SQLiteStores"].map { .product(name: $0, package: "Service") }
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let settings: [SwiftSetting] = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "synheart-auth", path: "../.."),
        .package(path: "../../Service"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
    ],
    targets: [
        .target(name: "CAllocations"),
        // For Checks/benchmarks/run, which measures in process.
        .executableTarget(name: "Benchmarks", dependencies: house + [crypto, "CAllocations"], swiftSettings: settings),
        // For Checks/benchmarks/http.
        .executableTarget(name: "SignedTraffic", dependencies: house + [crypto], swiftSettings: settings),
        // For Checks/benchmarks/redis.
        .executableTarget(
            name: "RedisTraffic",
            dependencies: [
                .product(name: "AuthContract", package: "synheart-auth"),
                .product(name: "AuthService", package: "Service"), .product(name: "RedisStores", package: "Service"),
            ], swiftSettings: settings),
        // For Checks/benchmarks/postgresql.
        .executableTarget(
            name: "PostgreSQLTraffic",
            dependencies: [
                crypto, .product(name: "AuthContract", package: "synheart-auth"),
                .product(name: "StrictJSON", package: "synheart-auth"),
                .product(name: "AuthService", package: "Service"),
                .product(name: "PostgreSQLStores", package: "Service"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "BareHandler", dependencies: [crypto, .product(name: "Hummingbird", package: "hummingbird")],
            swiftSettings: settings),
        // For Checks/benchmarks/size, which measures how many bytes the SDK adds to an app.
        .target(name: "PlainApp", dependencies: [crypto], swiftSettings: settings),
        .executableTarget(name: "SizeWithoutSDK", dependencies: ["PlainApp"], swiftSettings: settings),
        .executableTarget(
            name: "SizeWithSDK",
            dependencies: ["PlainApp", .product(name: "SynheartAuth", package: "synheart-auth")],
            swiftSettings: settings),
        // For Checks/benchmarks/startup, which measures how much the SDK delays an app's first signature.
        .executableTarget(name: "StartUpWithoutSDK", dependencies: [crypto], swiftSettings: settings),
        .executableTarget(
            name: "StartUpWithSDK", dependencies: [.product(name: "SynheartAuth", package: "synheart-auth")],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
