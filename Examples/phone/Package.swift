// swift-tools-version: 6.2
import PackageDescription

// An app on Linux: the client SDK alone. In a package of your own, depend on a checkout by its path, as here.
let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil
let settings: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

let package = Package(
    name: "phone",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "synheart-auth", path: "../..")],
    targets: [
        .executableTarget(
            name: "phone", dependencies: [.product(name: "SynheartAuth", package: "synheart-auth")],
            swiftSettings: settings)
    ])
