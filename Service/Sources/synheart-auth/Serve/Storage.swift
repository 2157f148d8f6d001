import AuthServer
import AuthService
import SQLiteStores

extension SQLiteStores {
    /// Less than this is not ready: registrations would soon fail, and claims after them.
    private static let minimumFreeBytes: Int64 = 16 << 20

    /// Whether a row can be written, and how much room there is.
    var storageCheck: Readiness.Check {
        Readiness.Check("storage") { [self] in
            try await probeWrite()
            guard let free = try await freeBytes(), free < Self.minimumFreeBytes else { return }
            throw StoreError(
                .unavailable, "\(free) bytes are free, fewer than \(Self.minimumFreeBytes): make room on the disk")
        }
    }

    /// What is scraped of the stores.
    var metrics: [MetricsSource] {
        [
            MetricsSource("synheart_replay_claims", help: "Replay claims that live now.") { [self] in
                liveClaims.map { Double($0) }
            },
            MetricsSource(
                "synheart_storage_free_bytes", help: "Bytes that are free for the database and the replay claims."
            ) { [self] in
                // A file system that does not answer: the figure before stays.
                (try? await freeBytes()).flatMap { $0 }.map { Double($0) }
            },
        ]
    }
}
