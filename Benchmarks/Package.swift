// swift-tools-version: 6.2
import PackageDescription

// A package of its own beside the house, so that a user of the libraries never builds it.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "synheart-auth", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
    ],
    targets: [
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                .product(name: "AppAttest", package: "synheart-auth"),
                .product(name: "AuthContract", package: "synheart-auth"),
                .product(name: "AuthService", package: "synheart-auth"),
                .product(name: "SQLiteStores", package: "synheart-auth"),
                .product(name: "AttestationTestKit", package: "synheart-auth"),
                .product(name: "StrictJSON", package: "synheart-auth"),
                .product(name: "Crypto", package: "swift-crypto"),
            ], swiftSettings: [.enableUpcomingFeature("NonisolatedNonsendingByDefault")])
    ],
    swiftLanguageModes: [.v6]
)
