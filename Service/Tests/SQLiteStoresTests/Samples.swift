import AuthContract
import AuthService
import Crypto
import Foundation
import Logging
import Testing

@testable import SQLiteStores

extension TemporaryFolder {
    var database: String { path("auth.sqlite") }
}

struct FixedClock: ServiceClock {
    var now = UnixTime(1_750_000_000)
}

let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

extension SQLiteStores.Options {
    /// Deadlines that even a slow machine meets.
    static var unhurried: Self {
        var options = Self()
        (options.deadline, options.busyTimeout) = (.seconds(120), .seconds(60))
        return options
    }
}

extension SQLiteStores {
    static func open(
        _ folder: TemporaryFolder, role: Role = .service, options: Options = .unhurried,
        clock: any ServiceClock = FixedClock()
    ) throws(StoreOpenError) -> SQLiteStores {
        try SQLiteStores(path: folder.database, role: role, options: options, clock: clock, logger: silent)
    }
}

func sampleChallenge(_ byte: UInt8, expiresIn seconds: Int64 = 90) throws -> IssuedChallenge {
    IssuedChallenge(
        bytes: [UInt8](repeating: byte, count: 32), appID: try AppID("com.example.app"), purpose: .rotate,
        expiresAt: FixedClock().now + seconds)
}

func sampleDevice(_ app: String = "com.example.app") throws -> DeviceRecord {
    DeviceRecord(
        appID: try AppID(app), deviceID: DeviceID(from: SystemRandom()), platform: .android, status: .registered,
        key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
        assurance: Assurance(app: .playIntegrity, key: .strongbox), registeredAt: FixedClock().now)
}

/// A device with a receipt that is due this many seconds after 1970.
func sampleDevice(withReceiptDueAt due: Int64) throws -> DeviceRecord {
    var device = try sampleDevice()
    device.appAttest = AppAttestKeyState(
        keyID: device.deviceID.bytes, publicKey: [4], appID: "TEAMID1234.com.example.app", environment: "production",
        receipt: [1], refresh: ReceiptRefresh(dueAt: UnixTime(due)))
    return device
}

extension SQLiteStores {
    func takeDueReceipt() async throws(StoreError) -> DueReceipt? {
        let now = FixedClock().now
        return try await receipts.takeDueReceipt(at: now, lease: now + 60)
    }

    /// Adds the app of a device, unless it exists.
    func addApp(of device: DeviceRecord) async throws {
        _ = try await apps.insert(
            StoredApp(appID: device.appID, sealedJSON: "{}"), recording: sampleEvent(.appAdded, device: device))
    }

    /// Inserts a device, and its app if that does not exist.
    func add(_ device: DeviceRecord) async throws {
        try await addApp(of: device)
        let outcome = try await devices.insert(
            device, under: StoredApp(appID: device.appID, sealedJSON: "{}"), maximumPending: 1,
            recording: sampleEvent(device: device))
        try #require(outcome == .inserted)
    }

    /// Changes the stored record of a device.
    @discardableResult
    func change(
        _ device: DeviceRecord, _ body: (inout DeviceRecord) -> Void
    ) async throws -> SaveOutcome {
        let before = try #require(try await devices.device(device.deviceID, of: device.appID))
        var after = before
        body(&after)
        return try await devices.save(DeviceChange(from: before, to: after, event: sampleEvent(device: device)))
    }
}

func sampleEvent(_ code: AuditEvent.Code = .securityEvent, device: DeviceRecord? = nil) -> AuditEvent {
    AuditEvent(code, at: FixedClock().now, actor: "test", appID: device?.appID, deviceID: device?.deviceID)
}
