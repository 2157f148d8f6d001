import AuthContract
import AuthService
import Crypto
import Foundation
import SQLiteStores

/// A million devices: look-up, start and memory. The file system is in memory, because making each device durable on a
/// disk takes long. The measured operations only read.
enum ManyDevices {
    private static let count = 1_000_000

    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder(inMemory: true)
        let path = folder.url.appendingPathComponent("bench.sqlite").path
        let (app, now) = (try AppID("bench.app"), SystemClock().now)
        var ids: [DeviceID] = []
        do {
            let stores = try SQLiteStores(path: path)
            let devices = stores.devices
            let stored = StoredApp(appID: app, sealedJSON: "{}")
            _ = try await stores.apps.insert(
                stored, recording: AuditEvent(.appAdded, at: now, actor: "benchmark", appID: app))
            let batches = stride(from: 0, to: count, by: 64)
            for start in batches {
                ids += try await withThrowingTaskGroup(of: DeviceID.self) { group in
                    for _ in start..<min(start + 64, count) {
                        group.addTask {
                            let device = DeviceRecord(
                                appID: app, deviceID: DeviceID(from: SystemRandom()), platform: .ios,
                                status: .registered,
                                key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
                                assurance: Assurance(app: .appAttest, key: .appVouched, labels: []), registeredAt: now)
                            _ = try await devices.insert(
                                device, under: stored, maximumPending: 1,
                                recording: AuditEvent(
                                    .deviceRegistered, at: now, actor: "benchmark", appID: app,
                                    deviceID: device.deviceID))
                            return device.deviceID
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
        }
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        let before = residentKilobytes()
        let started = ContinuousClock.now
        let stores = try SQLiteStores(path: path)
        print("  \(ids.count) devices, \(size >> 20) MiB; opened in \(started.duration(to: .now))")
        var delays = Delays()
        for _ in 0..<100_000 {
            guard let id = ids.randomElement() else { break }
            let began = ContinuousClock.now
            guard try await stores.devices.device(id, of: app) != nil else { throw Unexpected() }
            delays.note(began.duration(to: .now))
        }
        print(
            "  look-up of any device, not in memory: \(delays); resident memory \(residentKilobytes() - before) KiB more"
        )
        await stores.close()
        return []
    }
}
