// swift-tools-version: 6.2
import PackageDescription

// The libraries for apps and verifiers. The service is a separate package in Service/, so that an app does not resolve a server's
// dependencies. A room is one target with its tests. It depends only on rooms of lower layers (CONTRIBUTING.md has the map). CI
// sets SYNHEART_AUTH_STRICT: warnings are errors there only, so that a newer compiler does not break a user's build.
let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")

// Apple's stores read the privacy manifest. On other systems it would only create a resource bundle.
#if canImport(Darwin)
    let (privacy, noPrivacy): ([Resource], [String]) = ([.copy("PrivacyInfo.xcprivacy")], [])
#else
    let (privacy, noPrivacy): ([Resource], [String]) = ([], ["PrivacyInfo.xcprivacy"])
#endif

// On Linux the SDK sends over libcurl (Debian's package libcurl4-openssl-dev). Apple's systems have URLSession.
#if os(Linux)
    let curl: [Target.Dependency] = ["CLibcurl"]
    let curlTarget: [Target] = [.target(name: "CLibcurl", linkerSettings: [.linkedLibrary("curl")])]
#else
    let (curl, curlTarget): ([Target.Dependency], [Target]) = ([], [])
#endif

/// A target together with its tests, which mirror it under `Tests/`.
func room(
    _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [], resources: [Resource]? = nil,
    tests: [Target.Dependency]? = [], testResources: [Resource]? = nil
) -> [Target] {
    let target: Target = .target(
        name: name, dependencies: dependencies, exclude: exclude, resources: resources, swiftSettings: settings)
    guard let tests else { return [target] }
    return [
        target,
        .testTarget(
            name: "\(name)Tests", dependencies: [.target(name: name)] + tests, resources: testResources,
            swiftSettings: settings),
    ]
}

let package = Package(
    name: "synheart-auth",
    // Not watchOS: the code is untested where Int has 32 bits.
    platforms: [.iOS(.v16), .macOS(.v13), .tvOS(.v16), .visionOS(.v1)],
    products: [
        .library(name: "SynheartAuth", targets: ["SynheartAuth"]),
        .library(name: "SynheartAuthTestSupport", targets: ["SynheartAuthTestSupport"]),
        .library(name: "SynheartAuthC", type: .dynamic, targets: ["SynheartAuthC"]),
        .library(name: "AuthContract", targets: ["AuthContract"]),
        .library(name: "StrictJSON", targets: ["StrictJSON"]),
        .library(name: "CBOR", targets: ["CBOR"]),
        .library(name: "LenientDER", targets: ["LenientDER"]),
        .library(name: "AppAttest", targets: ["AppAttest"]),
        .library(name: "PlayIntegrity", targets: ["PlayIntegrity"]),
        .library(name: "AndroidKeyAttestation", targets: ["AndroidKeyAttestation"]),
        .library(name: "AttestationTestKit", targets: ["AttestationTestKit"]),
        // For the package in Service/ only: these products may change in any version.
        .library(name: "_Bytes", targets: ["Bytes"]),
        .library(name: "_TestHelpers", targets: ["TestHelpers"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.1"),
    ],
    targets: [
        // Encodings and tools that every room shares: base64, hexadecimal, times, PEM, DER, locks.
        room("Bytes"),

        // Small parsers. Each returns a value or an error with its position, for every input.
        room("StrictJSON", ["Bytes"], testResources: [.copy("Vectors")]),
        room("CBOR", testResources: [.copy("Vectors")]),
        room("LenientDER", ["Bytes"], tests: ["TestHelpers", asn1]),

        // The wire contract, and the client SDK based on it.
        room(
            "AuthContract", ["Bytes", "StrictJSON", crypto], tests: ["TestHelpers", "StrictJSON", crypto],
            testResources: [.copy("Vectors")]),
        room(
            "SynheartAuth", ["CSynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto] + curl, exclude: noPrivacy,
            resources: privacy,
            tests: ["TestHelpers", "Bytes", "AuthContract", "StrictJSON", crypto]),
        curlTarget,
        // A stand-in for the SDK in the tests of apps.
        room(
            "SynheartAuthTestSupport", ["SynheartAuth", "AuthContract", "Bytes"],
            tests: ["SynheartAuth", "AuthContract"]),

        // The SDK for hosts in other languages: a header, and the symbols behind it. Synheart Core's runtime looks eight of them up by
        // name in every app that links the SDK.
        [.target(name: "CSynheartAuth")],
        room(
            "SynheartAuthC", ["CSynheartAuth", "SynheartAuth", "Bytes", "AuthContract", "StrictJSON"],
            tests: ["CSynheartAuth", "SynheartAuth", "Bytes", "AuthContract", "StrictJSON", crypto]),

        // Three verification libraries, each usable alone.
        room(
            "AppAttest", ["Bytes", "StrictJSON", "CBOR", crypto, asn1, x509],
            tests: ["Bytes", "AttestationTestKit", "StrictJSON", crypto, x509], testResources: [.copy("Vectors")]),
        room(
            "PlayIntegrity", ["Bytes", "StrictJSON", crypto, cryptoExtras],
            tests: ["Bytes", "AttestationTestKit", "StrictJSON", crypto], testResources: [.copy("Vectors")]),
        room(
            "AndroidKeyAttestation", ["Bytes", "LenientDER", "StrictJSON", "CBOR", crypto, cryptoExtras],
            tests: ["Bytes", "AttestationTestKit", "LenientDER", "StrictJSON", crypto],
            testResources: [.copy("Vectors")]),

        // Helpers for the tests of several targets.
        [.target(name: "TestHelpers", path: "Tests/TestHelpers", swiftSettings: settings)],

        // A simulated Apple, a simulated Google, and devices.
        room(
            "AttestationTestKit", ["Bytes", "CBOR", crypto, cryptoExtras, asn1],
            tests: ["AppAttest", "PlayIntegrity", "AndroidKeyAttestation", "StrictJSON", crypto]),
    ].flatMap { $0 },
    swiftLanguageModes: [.v6]
)
