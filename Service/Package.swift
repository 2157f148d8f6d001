// swift-tools-version: 6.2
import PackageDescription

// The programs that an operator runs, based on the libraries of the parent package. Each target with its tests is
// called a room. A room depends only on rooms above it in CONTRIBUTING.md's list. CI sets SYNHEART_AUTH_STRICT, which
// makes warnings errors. Other builds do not set it, so that a newer compiler does not break a user's build.
let strict = Context.environment["SYNHEART_AUTH_STRICT"] != nil

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])

/// A library of the parent package.
func library(_ name: String) -> Target.Dependency { .product(name: name, package: "synheart-auth") }
let bytes = library("_Bytes")
let json = library("StrictJSON")
let contract = library("AuthContract")
let sdk = library("SynheartAuth")
let appAttest = library("AppAttest")
let playIntegrity = library("PlayIntegrity")
let keyAttestation = library("AndroidKeyAttestation")
let testKit = library("AttestationTestKit")
let helpers = library("_TestHelpers")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let atomics: Target.Dependency = .product(name: "Atomics", package: "swift-atomics")
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird: [Target.Dependency] = [
    .product(name: "HummingbirdCore", package: "hummingbird"),
    .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
    .product(name: "UnixSignals", package: "swift-service-lifecycle"), .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
    .product(name: "HTTPTypes", package: "swift-http-types"),
]
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let http2: [Target.Dependency] = ["NIOHTTP2", "NIOHPACK"].map { .product(name: $0, package: "swift-nio-http2") }
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let httpClient: [Target.Dependency] = [
    .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"), nioSSL,
]

let mustache: Target.Dependency = .product(name: "Mustache", package: "swift-mustache")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
/// The whole Hummingbird framework. `hummingbird` has only its server core.
let hummingbirdRouter: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")

/// A target together with its tests, which mirror it under `Tests/`.
func room(
    _ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil,
    tests: [Target.Dependency]? = [], testResources: [Resource]? = nil
) -> [Target] {
    let target: Target = .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: settings)
    guard let tests else { return [target] }
    return [
        target,
        .testTarget(
            name: "\(name)Tests", dependencies: [.target(name: name)] + tests, resources: testResources,
            swiftSettings: settings),
    ]
}

let package = Package(
    name: "synheart-auth-service",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "synheart-auth", targets: ["synheart-auth"]),
        .library(name: "AuthService", targets: ["AuthService"]),
        .library(name: "SQLiteStores", targets: ["SQLiteStores"]),
        .library(name: "PostgreSQLStores", targets: ["PostgreSQLStores"]),
        .library(name: "RedisStores", targets: ["RedisStores"]),
        .library(name: "_RESP", targets: ["RESP"]),
        .library(name: "StoreConformance", targets: ["StoreConformance"]),
        .library(name: "RequestVerification", targets: ["RequestVerification"]),
        .library(name: "RequestVerificationHummingbird", targets: ["RequestVerificationHummingbird"]),
    ],
    dependencies: [
        .package(name: "synheart-auth", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-atomics.git", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2.git", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.6"),
        .package(url: "https://github.com/jpsim/Yams.git", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache.git", from: "2.1.1"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.37.0"),
    ],
    targets: [
        // Evidence objects, their policies and audits. The service describes refused proofs with them, and the tools verify such
        // proofs again.
        room(
            "Verification", [bytes, appAttest, playIntegrity, keyAttestation, json, crypto],
            tests: [appAttest, playIntegrity, keyAttestation, testKit, json, crypto]),

        // The contents of an object and the result of each check, for people and for programs (`attestation inspect|verify`).
        room(
            "AttestationInspection", ["Verification", bytes, appAttest, playIntegrity, keyAttestation, json, crypto],
            tests: ["Verification", bytes, testKit, json, library("CBOR"), crypto], testResources: [.copy("Vectors")]),

        // The rules of the auth service, without HTTP and SQL, the protocols that its stores implement, and the default stores.
        room(
            "AuthService",
            [
                "Verification", bytes, contract, json, appAttest, playIntegrity, keyAttestation, crypto, x509, asn1,
                logging,
            ],
            tests: [
                helpers, bytes, contract, json, "ServiceTestHelpers", "StoreConformance", testKit,
                "AttestationInspection", "Verification", crypto, x509, asn1,
            ]),
        room("StoreConformance", ["AuthService", contract, json, crypto], tests: ["AuthService"]),
        room(
            "SQLiteStores", ["AuthService", bytes, contract, json, crypto, grdb, sqlite, logging, atomics, system],
            tests: [
                helpers, "AuthService", bytes, contract, json, "ServiceTestHelpers", "StoreConformance", crypto, grdb,
            ]),

        // The stores of a deployment with several nodes: PostgreSQL keeps everything; Redis can keep the data that lives for
        // minutes.
        [.systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])])],
        room(
            "PostgreSQLStores", ["AuthService", "CPostgreSQL", bytes, contract, json, logging],
            tests: [
                helpers, "AuthService", bytes, contract, "StoreConformance", "ServiceTestHelpers", "CPostgreSQL",
                crypto,
                x509, asn1,
                logging,
            ]),
        room("RESP", [nioCore], tests: [nioCore]),
        room(
            "RedisStores", ["AuthService", "RESP", bytes, contract, crypto, logging, nioCore, nioPosix, nioSSL],
            tests: [
                helpers, "AuthService", "RESP", bytes, contract, "StoreConformance", "ServiceTestHelpers", crypto,
                logging,
                nioCore,
                nioPosix, nioSSL, x509, asn1,
            ]),

        // The configuration that all HTTP clients of this package share.
        room(
            "ClientHTTP", httpClient + http2,
            tests: [nioPosix, .product(name: "NIOEmbedded", package: "swift-nio")] + httpClient + http2),

        // Implements AuthService's protocols with Apple's and Google's services.
        room(
            "AttestationProviders",
            [
                "AuthService", "ClientHTTP", bytes, contract, appAttest, playIntegrity, keyAttestation, json, crypto,
                logging,
            ] + httpClient,
            tests: [
                helpers, "AuthService", bytes, contract, appAttest, playIntegrity, keyAttestation, json,
                "ServiceTestHelpers", "StoreConformance", testKit, crypto, cryptoExtras, x509, logging,
                hummingbirdRouter,
            ] + hummingbird,
            testResources: [.copy("Vectors")]),

        // For other backends: asks the service who signed a request, and verifies tokens offline.
        room(
            "RequestVerification", ["ClientHTTP", bytes, contract, json, crypto, logging, httpTypes] + httpClient,
            tests: [helpers, bytes, contract, json, crypto, logging, httpTypes, nioCore, nioPosix]),
        room(
            "RequestVerificationHummingbird",
            ["RequestVerification", contract, httpTypes, hummingbirdRouter, nioCore],
            tests: [
                "RequestVerification", bytes, contract, httpTypes, hummingbirdRouter, logging, nioCore,
            ]),

        [
            // VerificationExample is the first example of the page of Backends/swift. Backends/testing/drive.py tests the
            // server VerificationSubject.
            .executableTarget(
                name: "VerificationExample",
                dependencies: ["RequestVerification", "RequestVerificationHummingbird", hummingbirdRouter],
                path: "Tests/VerificationExample", swiftSettings: strict ? [.treatAllWarnings(as: .error)] : []),
            .executableTarget(
                name: "VerificationSubject",
                dependencies: [
                    "RequestVerification", "RequestVerificationHummingbird", bytes, contract, json, httpTypes,
                    hummingbirdRouter, nioCore,
                ],
                path: "Tests/VerificationSubject", swiftSettings: settings),
        ],

        // HTTP: routes, listeners, limits, configuration, metrics, administration.
        room(
            "AuthServer",
            ["AuthService", "Verification", bytes, contract, json, crypto, logging, tracing, nioSSL, nioPosix, yams]
                + hummingbird,
            tests: [
                tracing, "AuthService", "Verification", bytes, contract, keyAttestation, playIntegrity, json, testKit,
                "ServiceTestHelpers", "StoreConformance", crypto, asn1, x509, logging, nioPosix, nioSSL,
            ] + hummingbird),

        // Web pages for operators, served by the operations listener. They only call the admin API.
        room(
            "Console",
            [
                "AuthServer", "AuthService", "AttestationInspection", "Verification", bytes, contract, json, crypto,
                mustache,
            ],
            tests: [
                "AuthServer", "AuthService", "AttestationInspection", "Verification", testKit, bytes, contract, json,
                "StoreConformance", crypto,
            ]),

        // A sidecar in front of a backend: it verifies requests before it forwards them.
        room(
            "AuthProxy",
            ["AuthServer", "AuthService", "ClientHTTP", "RequestVerification", contract, crypto, logging, nioPosix]
                + hummingbird + httpClient,
            tests: ["AuthServer", "RequestVerification", contract, logging, nioCore]),

        // A simulated phone for development, and the command-line tool.
        room(
            "SoftwareDevice", [sdk, testKit, contract, json, bytes, crypto],
            tests: [sdk, testKit, contract, json, bytes]),
        [
            .executableTarget(
                name: "synheart-auth",
                dependencies: [
                    "AuthServer", "AuthService", "Console", "AuthProxy", "ClientHTTP", "RequestVerification",
                    "AttestationProviders",
                    "SQLiteStores",
                    "PostgreSQLStores", "RedisStores", bytes, contract, json,
                    sdk,
                    "SoftwareDevice", testKit, "AttestationInspection", "Verification", playIntegrity, logging, x509,
                    asn1, nioPosix,
                    .product(name: "ArgumentParser", package: "swift-argument-parser"),
                ] + httpClient, swiftSettings: settings),
            // Helpers for the tests of several rooms: a PostgreSQL server, ports, log lines.
            .target(
                name: "ServiceTestHelpers", dependencies: [bytes, logging], path: "Tests/ServiceTestHelpers",
                swiftSettings: settings),
            // The SDK in a process that dies at given points; IntegrationTests start it.
            .target(name: "CCrashPoints", path: "Tests/CCrashPoints"),
            .executableTarget(
                name: "CrashingDevice",
                dependencies: [
                    "CCrashPoints", sdk, "SoftwareDevice", testKit, contract,
                    json,
                ],
                path: "Tests/CrashingDevice", swiftSettings: settings),
            .testTarget(
                name: "IntegrationTests",
                dependencies: [
                    helpers, "synheart-auth", "SoftwareDevice", sdk, testKit, "AuthServer",
                    "AuthService",
                    "SQLiteStores", "ServiceTestHelpers", bytes, contract, json, crypto, logging, grdb, asn1, x509,
                ],
                swiftSettings: settings),
        ],
    ].flatMap { $0 },
    swiftLanguageModes: [.v6]
)
