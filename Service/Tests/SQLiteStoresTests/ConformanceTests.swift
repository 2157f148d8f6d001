import StoreConformance
import Testing

@testable import SQLiteStores

struct ConformanceTests {
    @Test(arguments: StoreConformance.checks)
    func `the stores in SQLite keep every guarantee`(_ check: ConformanceCheck) async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        try await check.run(
            on: StoresUnderTest(
                challenges: stores.challenges, replay: stores.replay, apps: stores.apps, devices: stores.devices,
                audit: stores.audit, receipts: stores.receipts, credentials: stores.credentials,
                signingKeys: stores.signingKeys, pendingProofs: stores.pendingProofs, recordings: stores.recordings,
                history: stores.history, serviceKeys: stores.serviceKeys, webhooks: stores.webhooks,
                auditArchives: stores.auditArchives, endedDevices: stores.endedDevices, versions: stores.versions,
                now: FixedClock().now))
        await stores.close()
    }
}
