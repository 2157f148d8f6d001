// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "synheart_auth",
    platforms: [.iOS(.v16)],
    products: [.library(name: "synheart-auth", targets: ["synheart_auth"])],
    dependencies: [
        // The Flutter tool creates this package next to an app's plugins.
        .package(name: "FlutterFramework", path: "../FlutterFramework"),
        .package(url: "https://github.com/synheart-ai/synheart-auth.git", from: "1.0.0"),
    ],
    targets: [
        .target(
            name: "synheart_auth",
            dependencies: [
                .product(name: "FlutterFramework", package: "FlutterFramework"),
                .product(name: "SynheartAuth", package: "synheart-auth"),
                .product(name: "AuthContract", package: "synheart-auth"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
