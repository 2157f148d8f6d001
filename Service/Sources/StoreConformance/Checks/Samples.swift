internal import AuthContract
internal import AuthService
internal import Crypto
internal import StrictJSON

/// Ids, keys and records that only one check uses.
struct Samples: Sendable {
    let app: AppID
    let now: UnixTime
    private let random = SystemRandom()

    /// The device of all claims that the checks make.
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
    ) -> AppAttestKeyState {
        AppAttestKeyState(
            keyID: keyID ?? bytes(), publicKey: bytes(65), appID: "TEAMID1234.com.example.app",
            environment: "production",
            attestedExtensions: true, counter: counter, receipt: bytes(700), receiptOutcome: "verified", riskMetric: 4,
            refresh: refresh)
    }

    func device(
        status: DeviceStatus = .registered, key: DevicePublicKey? = nil, evidence: AppAttestKeyState? = nil,
        app: AppID? = nil, id: DeviceID? = nil, registeredAt: UnixTime? = nil, platform: Platform = .ios,
        observed: Bool = false
    ) -> DeviceRecord {
        DeviceRecord(
            appID: app ?? self.app, deviceID: id ?? deviceID(), platform: platform, status: status,
            key: key ?? self.key(),
            assurance: Assurance(app: .appAttest, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]),
            appVersion: "1.2.3", appAttest: evidence, registeredAt: registeredAt ?? now,
            admittedUnderObservation: observed,
            localID: "7A6B1E0C-6F0B-4D57-9C0E-0B1C2D3E4F50")
    }

    /// A change of a device, with its audit event.
    func change(
        _ device: DeviceRecord, _ code: AuditEvent.Code = .deviceRevoked, _ body: (inout DeviceRecord) -> Void
    ) -> DeviceChange {
        var after = device
        body(&after)
        return DeviceChange(from: device, to: after, event: event(code, device: device.deviceID, app: device.appID))
    }

    /// A rotation of a device to another key.
    func rotation(
        of device: DeviceRecord, to key: DevicePublicKey? = nil, overlap: Int64? = 60,
        evidence: AppAttestKeyState? = nil
    ) -> DeviceChange {
        change(device, .keyRotated) { after in
            (after.previousKey, after.previousKeyUntil) = (device.key, overlap.map { now + 10 + $0 })
            (after.key, after.keyRotatedAt, after.mustRotate) = (key ?? self.key(), now + 10, nil)
            after.assurance.key = .rotated
            after.appVersion = "1.2.4"
            if let evidence { after.appAttest = evidence }
        }
    }

    /// A change of an app's record, with its audit event.
    func change(_ app: StoredApp, to json: String, needsNoDevices: Bool = false) -> AppChange {
        AppChange(from: app, to: json, needsNoDevices: needsNoDevices, recording: event(.appChanged, app: app.appID))
    }

    /// A removal of an app, with the changes of the credentials that name it.
    func removal(of app: StoredApp, changing credentials: [CredentialChange] = []) -> AppChange {
        AppChange(removing: app, changing: credentials, recording: event(.appRemoved, app: app.appID))
    }

    /// The stored record of an app, as `provide` inserts it.
    static func record(of app: AppID) -> StoredApp { StoredApp(appID: app, sealedJSON: "{}") }
}

extension StoresUnderTest {
    /// Adds an app unless it exists. Its audit event has another app id, so that a check counts only its own events.
    func provide(_ app: AppID, _ samples: Samples) async throws {
        _ = try await apps.insert(
            Samples.record(of: app), recording: samples.event(.appAdded, app: Samples.appID()))
    }

    /// Inserts a new device, and its app unless it exists.
    func add(_ device: DeviceRecord, _ samples: Samples) async throws {
        try await provide(device.appID, samples)
        let outcome = try await insert(device, maximumPending: 100, samples)
        try expect(outcome, is: .inserted, "the outcome of inserting a new device")
    }

    /// Inserts a device as if its evidence had been judged under the app record that `provide` inserts.
    func insert(
        _ device: DeviceRecord, maximumPending: Int = 1, _ samples: Samples, _ code: AuditEvent.Code = .deviceRegistered
    ) async throws -> InsertOutcome {
        try await devices.insert(
            device, under: Samples.record(of: device.appID), maximumPending: maximumPending,
            recording: samples.event(code, device: device.deviceID, app: device.appID))
    }

    func stored(_ device: DeviceRecord) async throws -> DeviceRecord {
        try unwrap(try await devices.device(device.deviceID, of: device.appID), "device that was inserted")
    }

    /// The number of events of a device in the log.
    func eventCount(of device: DeviceRecord) async throws -> Int {
        try await audit.events(app: device.appID, device: device.deviceID, before: nil, limit: 1000).count
    }
}
