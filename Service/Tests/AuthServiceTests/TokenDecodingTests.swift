import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import PlayIntegrity
import StoreConformance
import StrictJSON
import Testing

/// A Play Integrity token is decoded with the app's keys, by Google, or not at all.
@Suite("Decoding of tokens")
struct TokenDecodingTests {
    /// The app record has the response keys of `old`. `new` has the keys that Play Console issued later.
    private static let old = Result { try GoogleAuthority() }
    private static let new = Result { try GoogleAuthority() }

    private static let account: JSONValue = [
        "client_email": "a@example.com", "private_key": "key", "token_uri": "https://example.com",
    ]

    private static func world(
        keys: Bool = true, account: Bool = true, packages: [JSONValue] = [.string(World.appID)],
        registration: JSONValue = [:]
    ) async throws -> World {
        let authority = try old.get()
        let pair: JSONValue = [
            "decryption_key": .string(authority.decryptionKey),
            "verification_key": .string(try authority.verificationKey()),
        ]
        var integrity = JSONObject()
        if keys { integrity["keys"] = [pair] }
        if account { integrity["service_account"] = Self.account }
        let world = try await World([
            "android": World.android(["packages": .array(packages), "play_integrity": .object(integrity)]),
            "registration": registration,
        ])
        world.google.decodesTokens(of: try new.get())
        return world
    }

    private enum Kind { case classic, standard }

    private func register(
        _ world: World, by authority: GoogleAuthority? = nil, _ kind: Kind = .classic,
        _ change: (inout PlayTokenOptions) -> Void = { _ in }
    ) async throws -> RegisterResponse {
        var options = PlayTokenOptions()
        change(&options)
        let (authority, now) = (try authority ?? Self.new.get(), world.clock.now.date)
        let made = options
        let request = try await world.enrolment(
            P256.Signing.PrivateKey(), platform: .android,
            proof: { nonce in
                switch kind {
                case .classic:
                    try authority.classicToken(nonce: nonce.playIntegrityText, at: now, options: made)
                case .standard:
                    try authority.standardToken(requestHash: nonce.playIntegrityText, at: now, options: made)
                }
            })
        return try await world.register(request, [])
    }

    @Test("a classic token that no configured key opens is decoded by Google: Play Console may have replaced the keys")
    func rotatedKeys() async throws {
        let world = try await Self.world()
        #expect(try await register(world).status == .registered)
        #expect(world.google.questions == 1)
    }

    @Test("a token that a configured key opens is decoded here, even if it is then refused")
    func decodedHere() async throws {
        let world = try await Self.world()
        #expect(try await register(world, by: try Self.old.get()).status == .registered)
        let changes: [(inout PlayTokenOptions) -> Void] = [
            { $0.isTagBroken = true }, { $0.isSignedByOther = true }, { $0.package = "com.example.evil" },
        ]
        for change in changes {
            try await expect(.invalidAttestation) {
                try await register(world, by: try Self.old.get(), .classic, change)
            }
        }
        #expect(world.google.questions == 0)
    }

    @Test("a verdict from Google is judged like one that was decoded here")
    func judged() async throws {
        let world = try await Self.world()
        try await expect(.invalidAttestation) { try await register(world) { $0.deviceLabels = [] } }
        try await expect(.invalidAttestation) { try await register(world) { $0.ageSeconds = 700 } }
        // A token of a third authority, whose keys neither the app nor Google has.
        let other = try GoogleAuthority()
        try await expect(.invalidAttestation) { try await register(world, by: other) }
    }

    @Test("an outage of Google is PROVIDER_UNAVAILABLE, and is settled after it")
    func outage() async throws {
        let world = try await Self.world(registration: ["provider_outage": "pending"])
        world.google.goAway()
        let answer = try await register(world)
        #expect(answer.status == .pending)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        let row = try await world.stores.device(answer.deviceID, of: AppID(World.appID))
        #expect(row?.status == .registered)
        let refusing = try await Self.world()
        refusing.google.goAway()
        try await expect(.providerUnavailable) { try await register(refusing) }
    }

    @Test("a token that no configured means can decode is refused, and not an outage", arguments: [true, false])
    func noMeans(keys: Bool) async throws {
        let world = try await Self.world(keys: keys, account: false, registration: ["provider_outage": "pending"])
        try await expect(.invalidAttestation) { try await register(world) }
        try await expect(.invalidAttestation) { try await register(world, .standard) }
        for proof in ["AAAA", "a.b.c.d.e", "", "****"] {
            let request = try await world.enrolment(
                P256.Signing.PrivateKey(), platform: .android, proof: { _ in proof })
            try await expect(.invalidAttestation, "\(proof)") { try await world.register(request, []) }
        }
        #expect(try await world.stores.count(of: AppID(World.appID)) == [:])
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        #expect(world.google.questions == 0)
    }

    @Test("a token that is malformed is refused here, and Google is not asked")
    func malformed() async throws {
        let world = try await Self.world()
        for proof in ["a.b.c.d.e", "a.b", "****", String(repeating: "A", count: 16 * 1024 + 1)] {
            let request = try await world.enrolment(
                P256.Signing.PrivateKey(), platform: .android, proof: { _ in proof })
            try await expect(.invalidAttestation) { try await world.register(request, []) }
        }
        #expect(world.google.questions == 0)
    }

    // MARK: Several packages

    private static let packages: [JSONValue] = ["com.example.first", "com.example.second", "com.example.third"]

    /// Failures for one package after which Google is asked about the next one.
    static let silent: [PlayIntegrityUnavailable.Code] = [.projectNotLinked, .quotaExceeded, .unexpectedAnswer]

    @Test("an answer about one package says nothing about the next", arguments: silent)
    func nextPackage(code: PlayIntegrityUnavailable.Code) async throws {
        let world = try await Self.world(packages: Self.packages)
        world.google.answer(.couldNotCheck(.init(code, "")), for: "com.example.first")
        for kind in [Kind.classic, .standard] {
            #expect(try await register(world, kind) { $0.package = "com.example.third" }.status == .registered)
        }
        #expect(world.google.packagesAskedFor.count == 6)
    }

    @Test("a token is refused only if Google refused it for every package", arguments: silent)
    func notRefused(code: PlayIntegrityUnavailable.Code) async throws {
        for package in ["com.example.first", "com.example.second", "com.example.third"] {
            let world = try await Self.world(packages: Self.packages)
            world.google.answer(.couldNotCheck(.init(code, "")), for: package)
            try await expect(.providerUnavailable) { try await register(world) { $0.package = "com.example.evil" } }
            #expect(world.google.packagesAskedFor.count == 3)
        }
        let world = try await Self.world(packages: Self.packages)
        try await expect(.invalidAttestation) { try await register(world) { $0.package = "com.example.evil" } }
    }

    @Test(
        "after an outage or a refused account no other package is tried",
        arguments: [.network, .providerUnavailable, .unauthenticated] as [PlayIntegrityUnavailable.Code])
    func outageOfAll(code: PlayIntegrityUnavailable.Code) async throws {
        let world = try await Self.world(packages: Self.packages)
        world.google.answer(.couldNotCheck(.init(code, "")), for: "com.example.second")
        try await expect(.providerUnavailable) { try await register(world) { $0.package = "com.example.third" } }
        #expect(world.google.packagesAskedFor == ["com.example.first", "com.example.second"])
    }
}
