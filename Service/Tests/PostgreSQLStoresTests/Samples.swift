import AuthContract
import AuthService
import Crypto
import Foundation
import Logging
import ServiceTestHelpers
import StoreConformance
import Testing

@testable import PostgreSQLStores

struct FixedClock: ServiceClock {
    var now = UnixTime(1_750_000_000)
}

let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

extension PostgreSQLStores {
    /// The stores in the form of the conformance suite.
    var underTest: StoresUnderTest {
        StoresUnderTest(
            challenges: challenges, replay: replay, apps: apps, devices: devices, audit: audit, receipts: receipts,
            credentials: credentials, signingKeys: signingKeys, pendingProofs: pendingProofs, recordings: recordings,
            history: history, serviceKeys: serviceKeys, webhooks: webhooks, auditArchives: auditArchives,
            endedDevices: endedDevices, versions: versions, now: clock.now)
    }

    /// Inserts a device, and its app if that does not exist.
    func add(_ device: DeviceRecord) async throws {
        _ = try await apps.insert(
            StoredApp(appID: device.appID, sealedJSON: "{}"), recording: sampleEvent(.appAdded, device: device))
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

func sampleEvent(_ code: AuditEvent.Code = .securityEvent, device: DeviceRecord? = nil) -> AuditEvent {
    AuditEvent(code, at: FixedClock().now, actor: "test", appID: device?.appID, deviceID: device?.deviceID)
}

/// The tests that need a server. They run one after another, because several servers that start, crash and hang concurrently
/// would only overload the machine.
@Suite(.enabled(if: PostgreSQLServer.isAvailable), .serialized)
enum AgainstPostgreSQL {}

/// Opens the stores of a node, with a deadline that even a busy machine meets.
func open(
    _ url: String, options: PostgreSQLStores.Options = .patient, clock: any ServiceClock = FixedClock()
) async throws -> PostgreSQLStores {
    try await PostgreSQLStores.connect(url, options: options, clock: clock, logger: silent)
}

extension PostgreSQLStores.Options {
    static var patient: Self {
        var options = Self()
        options.deadline = .seconds(20)
        // The tests use clocks that differ from the server's.
        options.clockTolerance = 1 << 40
        return options
    }
}
