import AuthServer
import AuthService
import SQLiteStores

extension SQLiteStores {
    /// The number of free bytes below which the service is not ready. With less space, registrations would soon fail, and
    /// replay claims would fail after them.
    private static let minimumFreeBytes: Int64 = 16 << 20

    /// The readiness checks of the storage: a write, and the free space.
    func readiness(of service: AuthService) -> [Readiness.Check] {
        let storage = Readiness.Check("storage") { [self] in
            try await probeWrite()
            guard let free = try await freeBytes(), free < Self.minimumFreeBytes else { return }
            throw StoreError(
                .unavailable, "\(free) bytes are free, fewer than \(Self.minimumFreeBytes): make room on the disk")
        }
        return [storage]
    }

    /// The metrics of the stores.
    var metrics: [MetricsSource] {
        [
            MetricsSource("synheart_replay_claims", help: "Replay claims that live now.") { [self] in
                liveClaims.map { Double($0) }
            },
            MetricsSource(
                "synheart_storage_free_bytes", help: "Bytes that are free for the database and the replay claims."
            ) { [self] in
                // If the file system does not answer, keep the last value.
                (try? await freeBytes()).flatMap { $0 }.map { Double($0) }
            },
        ]
    }
}
