import AuthService
import Foundation

/// A signed request through all the rules, claims kept in SQLite's journal.
enum SignedRequests {
    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder()
        let fleet = try await SignedFleet(folder: folder.url)
        let service = fleet.service
        var requests = try fleet.requests(count: 60_000).makeIterator()
        let alone = try await measure("signed request, scheme 1, one after another", rounds: 7) {
            guard let request = requests.next() else { throw OutOfRequests() }
            _ = try await service.authenticate(request, for: .status)
        }
        let together = try await concurrently(
            "signed request, scheme 1, 64 at a time", try fleet.requests(count: 100_000)
        ) { _ = try await service.authenticate($0, for: .status) }
        return [alone, together]
    }
}
