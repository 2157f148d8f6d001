import AuthServer
import AuthService
import SQLiteStores

/// The opened stores of the service, with any engine.
protocol StoreEngine: Sendable {
    /// All stores, as `AuthService` takes them.
    var all: AuthService.Stores { get }
    var receipts: any ReceiptStore { get }
    var serviceKeys: any ServiceKeyStore { get }
    /// The lock that keeps services from running while the service key changes.
    var lock: any ServiceLock { get }
    /// One prefix for each Redis server that can be used now. The server stores the challenges and device ids that begin with
    /// these bytes, so `Readiness` probes it with such values. Empty without Redis.
    var parts: [[UInt8]] { get }
    /// Whether one of the readiness checks compares this node's clock with a server's.
    var hasServerClock: Bool { get }
    /// The readiness checks of the engine.
    func readiness(of service: AuthService) -> [Readiness.Check]
    var metrics: [MetricsSource] { get }

    /// Tells the stores that the service seals with this key from now on. If other processes can change the keys, sealed writes
    /// fail once this key is no longer listed.
    func serviceSeals(with key: ServiceKeyCheck)

    /// Refuses each later change unless `key` is the service key that seals new values at that time.
    func allowWrites(whileSealing key: ServiceKeyCheck)

    /// Runs `body` with the end of the audit log (nil: the log is empty) and a function that visits every row, both from one
    /// snapshot. The service may run.
    func snapshot(_ body: @escaping @Sendable (AuditLink?, StoredTable.Export) throws -> Void) async throws

    /// Closes the stores. Calls that already run are still answered.
    func close() async
}

extension SQLiteStores: StoreEngine {
    /// Empty: only Redis servers have prefixes.
    var parts: [[UInt8]] { [] }
    var hasServerClock: Bool { false }

    /// Nothing to do: the service's lock prevents every other process from changing the sealing key.
    func serviceSeals(with key: ServiceKeyCheck) {}
}
