import AttestationTestKit
import AuthContract
import AuthServer
import AuthService
import Bytes
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth
import Testing

/// Every policy that an operator can set, with every operation of the SDK, on both kinds of phones. If an operation cannot
/// work, its error has a recovery, and the recovery works.
@Suite(.timeLimit(.minutes(15))) struct PolicyMatrix {
    /// One value of one member of an app record: a case of `docs/vectors/policies.json`. The Kotlin client's tests run the same
    /// cases.
    struct Setting: Sendable {
        let path: [String]
        let value: JSONValue
        /// Other members that the value requires.
        let beside: [(path: [String], value: JSONValue)]
        /// The platforms to which the policy applies. Phones of other platforms are not affected.
        let platforms: [Platform]
        /// The codes of the errors that the policy intends. They need no recovery.
        let refusals: Set<String>
        /// The expected status of the answer to a request to another service.
        let apiStatus: Int
        /// The scheme that the SDK is configured with: scheme 2 if the app record demands it.
        var scheme: SignatureScheme { path.last == "minimum_scheme" && value == 2 ? .two : .one }

        init?(_ object: JSONObject) {
            func path(_ text: String) -> [String] { text.split(separator: ".").map(String.init) }
            guard let name = object["path"]?.string, let value = object["value"],
                let beside = object["beside"]?.object, let platforms = object["platforms"]?.array,
                let refusals = object["refusals"]?.array, let apiStatus = object["api_status"]?.integer
            else { return nil }
            self.path = path(name)
            self.value = value
            self.beside = beside.members.map { (path($0.name), $0.value) }
            self.platforms = platforms.compactMap { $0.string.flatMap { Platform(rawValue: $0) } }
            self.refusals = Set(refusals.compactMap(\.string))
            self.apiStatus = Int(apiStatus)
        }
    }

    static let settings: [Setting] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/vectors/policies.json")
        // If the file cannot be read, there are no cases, and the test below reports every member as missing.
        let bytes = (try? Data(contentsOf: file)).map { Array($0) } ?? []
        let cases = (try? JSONValue(parsing: bytes))?.object?["policies"]?.array ?? []
        return cases.compactMap { $0.object.flatMap { Setting($0) } }
    }()

    /// Members that only contain other members, that are not policies for devices, or that other tests below cover.
    private static let others: Set<String> = [
        "app_id", "name", "ios", "android", "signature", "keys", "registration", "evidence", "keys.compromise",
        "keys.compromise.keys_before", "keys.compromise.rotate_by",
    ]

    @Test func `the matrix has every member of an app record`() {
        let members = AppRecord.memberNames.flatMap { object in object.names.map { object.path + [$0] } }
        let listed = Set(Self.settings.map(\.path))
        for member in members where !Self.others.contains(member.joined(separator: ".")) {
            #expect(listed.contains(member), "\(member.joined(separator: ".")) has no value in the matrix")
        }
    }

    /// The time at which the operator sets the policy.
    enum Moment: Int, CaseIterable, Sendable {
        case beforeRegistration, afterRegistration
        /// After the registration, together with `reattest_on_rotation`.
        case withReattestation
    }

    @Test("every policy and operation work together, or the recovery does", arguments: Moment.allCases)
    func matrix(moment: Moment) async throws {
        // With `TEST_SAMPLE=K/3`, a run takes a third of the cases. It still includes every setting, each at one of the three moments.
        let indices = Self.settings.indices.filter { isSampled($0 + moment.rawValue) }
        // Starts a new world after 16 cases, because each case advances the clock by a quarter of a year for each platform, and
        // the vendors' certificates expire after some years.
        for start in stride(from: 0, to: indices.count, by: 16) {
            try await World.with { world in
                for index in indices[start..<min(start + 16, indices.count)] {
                    for platform in Self.settings[index].platforms { await Self.live(index, platform, moment, world) }
                }
            }
        }
    }

    private static func live(_ index: Int, _ platform: Platform, _ moment: Moment, _ world: World) async {
        let setting = settings[index]
        do {
            try await world.life("com.example.m\(index)", platform, setting.scheme).live(setting, moment)
        } catch {
            let policy = "\(setting.path.joined(separator: ".")) = \(setting.value.text())"
            Issue.record("\(policy), \(platform.rawValue): \(error)")
        }
    }

    @Test(
        "a demand to rotate is met while it can be, and afterwards a new registration helps",
        arguments: [RotationReason.scheduled, .compromise])
    func demand(reason: RotationReason) async throws {
        try await World.with { world in
            for platform in Platform.allCases {
                for isLate in [false, true] {
                    for reattests in [false, true] {
                        let life = try world.life("com.example.d\(isLate)\(reattests)", platform)
                        try await life.add([(["keys", "reattest_on_rotation"], .bool(reattests))])
                        try await life.register()
                        try await life.demandRotation(reason, within: 3600)
                        _ = try await life.sdk.deviceToken(appID: life.app)
                        world.clock.move(isLate ? 3601 : 60)
                        try await life.perform("maintain") { try await life.sdk.maintain(appID: life.app) }
                        try await life.useEverything()
                        let status = try await life.status()
                        #expect(status.mustRotate == false, "\(platform), late: \(isLate)")
                    }
                }
            }
        }
    }

    @Test func `a key that is compromised by policy rotates in time, and is registered anew when it is too late`()
        async throws
    {
        try await World.with { world in
            for isLate in [false, true] {
                let life = try world.life("com.example.c\(isLate)", .ios)
                try await life.add([])
                try await life.register()
                world.clock.move(60)
                try await life.change([
                    (
                        ["keys", "compromise"],
                        [
                            "keys_before": .string(world.clock.now.iso8601),
                            "rotate_by": .string((world.clock.now + 3600).iso8601),
                        ]
                    )
                ])
                world.clock.move(isLate ? 3700 : 60)
                try await life.useEverything()
                #expect(try await life.status().mustRotate == false)
            }
        }
    }

    @Test("a lost App Attest key is replaced where the policy allows it, else a reset helps", arguments: [true, false])
    func lostAttestKey(rebinds: Bool) async throws {
        try await World.with { world in
            let life = try world.life("com.example.l", .ios)
            try await life.add([
                (["keys", "rebind_on_rotation"], .bool(rebinds)), (["keys", "reattest_on_rotation"], true),
                (["ios", "assertions_required_on"], ["/"]),
            ])
            try await life.register()
            let id = try await life.sdk.getDeviceId(appID: life.app)
            for _ in 0..<2 {
                life.loseAttestKeys()
                try await life.useEverything()
            }
            let later = try await life.sdk.getDeviceId(appID: life.app)
            #expect((later == id) == rebinds)
            let labels = try await life.status().assurance.labels
            #expect(labels.contains("rebound") == rebinds)
        }
    }
}

// MARK: The world: a service, a clock, two vendors

private struct World: Sendable {
    let service: ClockedService
    let clock: MovableClock
    let apple: AppleAuthority
    let google: GoogleAuthority

    static func with(_ body: @escaping @Sendable (World) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let clock = MovableClock()
        let start = Date(timeIntervalSince1970: TimeInterval(clock.now.seconds))
        let apple = try AppleAuthority(from: start.addingTimeInterval(-2 * 86_400))
        let google = try GoogleAuthority()
        var protection = ProtectionSettings()
        protection.enrolment = .init(burst: 100_000, perMinute: 100_000)
        try await ClockedService.with(database: folder.path("db.sqlite"), clock: clock, protection: protection) {
            service in
            try await body(World(service: service, clock: clock, apple: apple, google: google))
        }
    }

    func life(_ name: String, _ platform: Platform, _ scheme: SignatureScheme = .one) throws -> Life {
        try Life(world: self, app: "\(name).\(platform.rawValue)", platform: platform, scheme: scheme)
    }
}

/// One app with one device.
private final class Life: Sendable {
    let app: String
    let sdk: SynheartAuth
    private let appID: AppID
    private let platform: Platform
    private let world: World
    private let phone: MatrixPhone
    private let api: MatrixTransport

    private struct Unrecoverable: Error, CustomStringConvertible {
        let operation: String
        let error: SynheartAuthError
        var description: String { "\(operation) failed without a recovery: \(error)" }
    }

    init(world: World, app: String, platform: Platform, scheme: SignatureScheme) throws {
        self.world = world
        self.app = app
        self.platform = platform
        appID = try AppID(app)
        phone = MatrixPhone(platform, world.apple, world.google, world.clock)
        api = MatrixTransport(port: world.service.port)
        var configuration = try SynheartAuth.Configuration(baseUrl: "http://127.0.0.1:\(world.service.port)")
        configuration.storage = phone.storage
        configuration.keyStore = phone
        configuration.attestation = phone
        configuration.clock = PhoneClock(clock: world.clock)
        configuration.sleeper = ClockSleeper(clock: world.clock)
        configuration.transport = api
        configuration.origins = [try RequestOrigin("https://api.test")]
        configuration.rotatesAutomatically = false
        configuration.scheme = scheme
        configuration.logger = SilentLogger()
        sdk = SynheartAuth(configuration)
    }

    func loseAttestKeys() { phone.loseAttestKeys() }

    // MARK: The operator

    private func record(_ members: [(path: [String], value: JSONValue)]) throws -> AppRecord {
        let record: JSONValue = [
            "app_id": .string(app), "build_channel": "staging",
            "ios": [
                "app_ids": ["TESTTEAM01.com.example.app"], "trust_anchors": [.string(world.apple.rootsPEM)],
            ],
            "android": [
                "packages": ["com.example.app"],
                "certificate_digests": [.string(Base64.url.encode(SimulatedAndroid.certificateDigest))],
                "trust_anchors": [.string(try world.google.rootsPEM())],
                "play_integrity": [
                    "keys": [
                        [
                            "decryption_key": .string(world.google.decryptionKey),
                            "verification_key": .string(try world.google.verificationKey()),
                        ]
                    ]
                ],
            ],
        ]
        let whole = members.reduce(record) { Self.set($0, $1.path[...], to: $1.value) }
        return try AppRecord(JSONFields(whole))
    }

    private static func set(_ object: JSONValue, _ path: ArraySlice<String>, to value: JSONValue) -> JSONValue {
        guard let name = path.first else { return value }
        var members = object.object ?? JSONObject()
        members[name] = set(members[name] ?? .object(JSONObject()), path.dropFirst(), to: value)
        return .object(members)
    }

    func add(_ members: [(path: [String], value: JSONValue)]) async throws {
        let added = try await world.service.service.apps.add(record(members), actor: "test")
        try #require(added)
        let (_, text) = try await world.service.service.credentials.create(
            name: "api", role: .service, scope: .apps([appID]), life: 3600 * 24 * 365, actor: "test")
        api.set(text.exposed)
    }

    func change(_ members: [(path: [String], value: JSONValue)]) async throws {
        let changed = try await world.service.service.apps.change(record(members), actor: "test")
        try #require(changed)
    }

    func demandRotation(_ reason: RotationReason, within seconds: Int64) async throws {
        let id = try DeviceID(try #require(try await sdk.getDeviceId(appID: app)))
        try await world.service.service.administration.forceRotation(
            id, of: appID, by: world.clock.now + seconds, reason: reason, actor: "test")
    }

    // MARK: The device

    func register() async throws {
        guard try await sdk.registerDevice(appID: app).status == .pending else { return }
        let id = try DeviceID(try #require(try await sdk.getDeviceId(appID: app)))
        try await world.service.service.administration.approve(id, of: appID, actor: "test")
        #expect(try await sdk.registerDevice(appID: app).status == .registered)
    }

    /// Runs an operation. After an error, follows its recovery, and runs the operation again.
    func perform(_ name: String, _ operation: () async throws -> Void) async throws {
        for _ in 0..<4 {
            do {
                return try await operation()
            } catch let error as SynheartAuthError {
                switch error.recovery {
                case .retry: world.clock.move(max(1, error.retryAfter?.components.seconds ?? 1))
                case .register: try await register()
                case .rotate: _ = try await sdk.rotateKey(appID: app)
                case .reset:
                    try await sdk.resetDeviceIdentity(appID: app, reason: .serverInstructed)
                    try await register()
                default: throw Unrecoverable(operation: name, error: error)
                }
            }
        }
        Issue.record("\(app): \(name) fails after each recovery")
    }

    func status() async throws -> StatusResponse {
        let answer = try await sdk.send(
            TransportRequest(
                method: "GET", url: "http://127.0.0.1:\(world.service.port)\(Route.status.rawValue)",
                headers: HeaderFields(), body: []), appID: app)
        guard answer.status == 200 else {
            throw SynheartAuthError.fromCode(try ErrorBody(parsing: answer.body).code)
        }
        return try StatusResponse(parsing: answer.body)
    }

    private func call(_ method: String, _ path: String) async throws -> Int {
        let request = TransportRequest(
            method: method, url: "https://api.test\(path)", headers: HeaderFields(), body: method == "POST" ? [1] : [])
        // On a busy machine the disk may be too slow for a claim. The SDK returns the answer 503, and the app sends the request again.
        for _ in 0..<3 {
            let status = try await sdk.send(request, appID: app).status
            if status != 503 { return status }
        }
        return 503
    }

    private func expect(_ status: Int, _ method: String, _ path: String) async throws {
        let answer = try await call(method, path)
        #expect(answer == status, "\(app): \(method) \(path)")
    }

    /// Runs each operation once. After the rotations, sends one more request to another service.
    func useEverything(apiStatus: Int = 200) async throws {
        try await perform("status") { _ = try await status() }
        try await perform("GET") { try await expect(apiStatus, "GET", "/v1/pay/1") }
        try await perform("POST") { try await expect(apiStatus, "POST", "/v1/pay") }
        try await perform("token") { _ = try await sdk.deviceToken(appID: app) }
        try await perform("rotate") { _ = try await sdk.rotateKey(appID: app) }
        world.clock.move(3600)
        try await perform("compromise") { _ = try await sdk.rotateKey(appID: app, reason: .compromise) }
        try await perform("GET") { try await expect(apiStatus, "GET", "/v1/pay/1") }
    }

    /// Runs the whole life of a device under a policy.
    func live(_ setting: PolicyMatrix.Setting, _ moment: PolicyMatrix.Moment) async throws {
        var policy = setting.beside + [(setting.path, setting.value)]
        if moment == .withReattestation, setting.path != ["keys", "reattest_on_rotation"] {
            policy.append((["keys", "reattest_on_rotation"], true))
        }
        do {
            if moment == .beforeRegistration {
                try await add(policy)
                try await register()
            } else {
                let isFixed = setting.path == ["build_channel"]
                try await add(isFixed ? policy : [])
                try await register()
                try await change(policy)
            }
            try await useEverything(apiStatus: setting.apiStatus)
            // `maintain` must rotate: the last rotation is now 91 days ago.
            world.clock.move(91 * 86_400)
            try await perform("maintain") { try await sdk.maintain(appID: app) }
            try await useEverything(apiStatus: setting.apiStatus)
            try await sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
            try await register()
            try await perform("token") { _ = try await sdk.deviceToken(appID: app) }
        } catch let error as Unrecoverable where setting.refusals.contains(error.error.code.text) {
        } catch let error as SynheartAuthError where setting.refusals.contains(error.code.text) {
        }
    }
}

// MARK: The phone

/// The keys, records and proofs of one phone, in memory.
private final class MatrixPhone: KeyStore, AttestationProvider {
    let platform: Platform
    let storage = VolatileStorage()
    private let keys = VolatileKeyStore()
    private let challenges = Locked<[KeyAlias: [UInt8]]>([:])
    private let apple: Locked<SimulatedAppAttest>
    private let makeApple: @Sendable () -> SimulatedAppAttest
    private let google: GoogleAuthority
    private let now: @Sendable () -> Date

    init(_ platform: Platform, _ apple: AppleAuthority, _ google: GoogleAuthority, _ clock: MovableClock) {
        self.platform = platform
        self.google = google
        now = { Date(timeIntervalSince1970: TimeInterval(clock.now.seconds)) }
        makeApple = { [now] in
            SimulatedAppAttest(iosAppID: "TESTTEAM01.com.example.app", authority: apple, directory: nil, now: now)
        }
        self.apple = Locked(makeApple())
    }

    /// Loses the App Attest keys, as a reinstallation does.
    func loseAttestKeys() { apple.withLock { $0 = makeApple() } }

    var protection: KeyProtection { .software }
    /// An Android Keystore attests a key when the key is created.
    var attestsKeys: Bool { platform == .android }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) -> DevicePublicKey {
        challenges.withLock { $0[alias] = challenge ?? [] }
        return keys.create(alias, challenge: challenge)
    }

    func load(_ alias: KeyAlias) -> DevicePublicKey? { keys.load(alias) }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        try keys.sign(message, with: alias)
    }

    func delete(_ alias: KeyAlias) { keys.delete(alias) }

    func makeHandle() async throws(AttestationError) -> String? {
        platform == .ios ? try await apple.withLock({ $0 }).makeHandle() : nil
    }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        if platform == .ios { return try await apple.withLock({ $0 }).attest(subject) }
        var verdict = PlayTokenOptions()
        verdict.package = "com.example.app"
        verdict.certificateDigests = [SimulatedAndroid.certificateDigest]
        var options = KeyAttestationOptions()
        options.packages = [.init("com.example.app")]
        options.signatureDigests = [SimulatedAndroid.certificateDigest]
        do {
            return AttestationEvidence(
                proof: try google.classicToken(
                    nonce: subject.bindingNonce.playIntegrityText, at: now(), options: verdict),
                keyAttestation: try google.attest(
                    subject.publicKey.verifyingKey, challenge: challenges.withLock { $0[subject.alias] ?? [] },
                    at: now(),
                    options: options))
        } catch { throw AttestationError(.refused, reason: "\(error)") }
    }

    func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        try await apple.withLock({ $0 }).assertion(handle: handle, clientDataHash: clientDataHash)
    }
}

private struct PhoneClock: DeviceClock {
    let clock: MovableClock
    var wallMilliseconds: Int64 { clock.now.seconds * 1000 }
    var continuous: Duration { .seconds(clock.now.seconds) }
}

/// Moves the clock forward instead of waiting for a retry. Other waits take a fixed real time, whatever their
/// `duration` is.
private struct ClockSleeper: Sleeper {
    let clock: MovableClock

    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        switch purpose {
        case .retry: clock.move(duration.components.seconds + 1)
        case .turn: try await Task.sleep(for: .milliseconds(2))
        case .deadline: try await Task.sleep(for: .seconds(120))
        }
    }
}

/// Sends requests to the auth service unchanged. Answers requests to `api.test` as the service of that name would: asks the auth
/// service's `/verify`, and returns its answer.
private final class MatrixTransport: HTTPTransport {
    private let base = DefaultTransport()
    private let port: Int
    private let credential = Locked("")

    init(port: Int) { self.port = port }

    func set(_ text: String) { credential.withLock { $0 = text } }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let origin = "https://api.test"
        guard request.url.hasPrefix(origin) else { return try await base.send(request) }
        let question = VerifyRequest(
            method: request.method, scheme: "https", authority: "api.test",
            path: String(request.url.dropFirst(origin.count)), query: nil, headers: request.headers,
            body: .bytes(request.body))
        return try await base.send(
            TransportRequest(
                method: "POST", url: "http://127.0.0.1:\(port)\(Route.verify.rawValue)",
                headers: HeaderFields([
                    ("Content-Type", "application/json"), ("Authorization", "Bearer \(credential.withLock { $0 })"),
                ]), body: question.bytes))
    }
}
