internal import AuthContract
internal import AuthService
internal import Crypto
internal import StrictJSON

/// Ids, keys and records that no other check uses.
struct Samples: Sendable {
    let app: AppID
    let now: UnixTime
    private let random = SystemRandom()

    /// The device of all claims.
    static let device = DeviceID(from: SystemRandom())

    init(_ stores: StoresUnderTest) throws {
        app = try Self.appID()
        now = stores.now
    }

    static func appID() throws -> AppID {
        try AppID("conformance." + Hexadecimal.encode(SystemRandom().bytes(8)))
    }

    func bytes(_ count: Int = 32) -> [UInt8] { random.bytes(count) }

    func deviceID() -> DeviceID { DeviceID(from: random) }

    func key() -> DevicePublicKey { DevicePublicKey(P256.Signing.PrivateKey().publicKey) }

    func claim() -> ReplayClaim { .nonce(RequestNonce(from: random), of: deviceID()) }

    func challenge(expiresIn seconds: Int64 = 90) -> IssuedChallenge {
        IssuedChallenge(bytes: bytes(), appID: app, purpose: .register, expiresAt: now + seconds)
    }

    func event(
        _ code: AuditEvent.Code = .deviceRegistered, device: DeviceID? = nil, app: AppID? = nil
    ) -> AuditEvent {
        AuditEvent(
            code, at: now, actor: "conformance", appID: app ?? self.app, deviceID: device,
            detail: JSONObject([("before", .null), ("after", "\u{1F511} \"é\"\n"), ("count", 2)]))
    }

    func evidence(
        keyID: [UInt8]? = nil, counter: UInt32 = 0, refresh: ReceiptRefresh = ReceiptRefresh()
    ) -> AppAttestEvidence {
        AppAttestEvidence(
            keyID: keyID ?? bytes(), publicKey: bytes(65), appID: "TEAMID1234.com.example.app",
            environment: "production",
            attestedExtensions: true, counter: counter, receipt: bytes(700), receiptOutcome: "verified", riskMetric: 4,
            refresh: refresh)
    }

    func device(
        status: DeviceStatus = .registered, key: DevicePublicKey? = nil, evidence: AppAttestEvidence? = nil,
        app: AppID? = nil, id: DeviceID? = nil, registeredAt: UnixTime? = nil, platform: Platform = .ios,
        observed: Bool = false
    ) -> DeviceRecord {
        DeviceRecord(
            appID: app ?? self.app, deviceID: id ?? deviceID(), platform: platform, status: status,
            key: key ?? self.key(),
            assurance: Assurance(app: .appAttest, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]),
            appAttest: evidence, registeredAt: registeredAt ?? now, admittedUnderObservation: observed,
            localID: "7A6B1E0C-6F0B-4D57-9C0E-0B1C2D3E4F50")
    }

    func rotation(
        of device: DeviceRecord, from: DevicePublicKey? = nil, to: DevicePublicKey? = nil, overlap: Int64? = 60,
        evidence: AppAttestEvidence? = nil
    ) -> RotationChange {
        RotationChange(
            appID: device.appID, deviceID: device.deviceID, from: from ?? device.key, to: to ?? key(), at: now + 10,
            overlapUntil: overlap.map { now + 10 + $0 },
            assurance: Assurance(app: device.assurance.app, key: .rotated, labels: device.assurance.labels),
            evidence: evidence)
    }
}

extension StoresUnderTest {
    /// Adds an app unless it is there. Its audit event has another app id, so that a check counts only its own events.
    func provide(_ app: AppID, _ samples: Samples) async throws {
        _ = try await apps.insert(
            StoredApp(appID: app, sealedJSON: "{}"), recording: samples.event(.appAdded, app: Samples.appID()))
    }

    /// Inserts a new device.
    func add(_ device: DeviceRecord, _ samples: Samples) async throws {
        try await provide(device.appID, samples)
        let outcome = try await devices.insert(
            device, maximumPending: 100, recording: samples.event(device: device.deviceID, app: device.appID))
        try expect(outcome, is: .inserted, "the outcome of inserting a new device")
    }

    func stored(_ device: DeviceRecord) async throws -> DeviceRecord {
        try unwrap(try await devices.device(device.deviceID, of: device.appID), "device that was inserted")
    }

    /// The number of events of a device in the log.
    func eventCount(of device: DeviceRecord) async throws -> Int {
        try await audit.events(app: device.appID, device: device.deviceID, before: nil, limit: 1000).count
    }
}
