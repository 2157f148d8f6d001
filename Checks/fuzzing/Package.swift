// swift-tools-version: 6.2
import PackageDescription

// libFuzzer targets, one executable each: Checks/fuzzing/run.sh TARGET [RUNS]. They link only with `--sanitize fuzzer`, so they
// are a separate package that users of the library never build.
func target(_ name: String, product: String, _ others: [Target.Dependency] = []) -> Target {
    .executableTarget(
        name: name, dependencies: [.product(name: product, package: "synheart-auth")] + others,
        // libFuzzer provides `main`.
        swiftSettings: [.unsafeFlags(["-parse-as-library"])])
}

/// A fuzzer that builds signed objects by a grammar, with the test kit and the shared FuzzSupport.
func grammar(_ name: String, product: String) -> Target {
    let fuzzer = target(name, product: product)
    fuzzer.dependencies += [.product(name: "AttestationTestKit", package: "synheart-auth"), "FuzzSupport"]
    return fuzzer
}

let package = Package(
    name: "Fuzzing",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "synheart-auth", path: "../.."),
        // For fuzzers of the service's modules.
        .package(path: "../../Service"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
    ],
    targets: [
        // The small parsers are not products of their own: they come with libraries that depend on them.
        target("FuzzCBOR", product: "AppAttest"),
        target("FuzzAttestation", product: "AppAttest"),
        target("FuzzAssertion", product: "AppAttest"),
        target("FuzzReceipt", product: "AppAttest"),
        target("FuzzJSON", product: "AuthContract"),
        target("FuzzPath", product: "AuthContract"),
        target("FuzzDER", product: "AndroidKeyAttestation"),
        target("FuzzKeyAttestation", product: "AndroidKeyAttestation"),
        // Chains put together from a grammar, with valid signatures.
        target(
            "FuzzKeyAttestationChains", product: "AndroidKeyAttestation",
            [
                .product(name: "AttestationTestKit", package: "synheart-auth"),
                .product(name: "Crypto", package: "swift-crypto"),
            ]),
        target("FuzzPlayIntegrity", product: "PlayIntegrity"),
        // Replies of a Redis server.
        .executableTarget(
            name: "FuzzRESP",
            dependencies: [
                .product(name: "_RESP", package: "Service"), .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: [.unsafeFlags(["-parse-as-library"])]),
        .target(
            name: "FuzzSupport",
            dependencies: [
                .product(name: "AppAttest", package: "synheart-auth"),
                .product(name: "AttestationTestKit", package: "synheart-auth"),
            ]),
        grammar("FuzzSignedAttestation", product: "AppAttest"),
        grammar("FuzzSignedAssertion", product: "AppAttest"),
        grammar("FuzzSignedReceipt", product: "AppAttest"),
    ],
    swiftLanguageModes: [.v6]
)
