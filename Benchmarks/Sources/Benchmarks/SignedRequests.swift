import AuthService
import CAllocations
import Foundation

/// A signed request through all the rules, claims kept in SQLite's journal.
enum SignedRequests {
    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder()
        let fleet = try await SignedFleet(folder: folder.url)
        let service = fleet.service
        let alone = try await oneAfterAnother(fleet)
        let together = try await concurrently(
            "signed request, scheme 1, 64 at a time", try fleet.requests(count: 100_000)
        ) { _ = try await service.authenticate($0, for: .status) }
        return [alone, together]
    }

    /// The median of rounds of a thousand, each signed just before: a server has just read what it verifies, and here it must not
    /// come from memory that sixty thousand requests have been through since.
    private static func oneAfterAnother(_ fleet: SignedFleet) async throws -> Measurement {
        var rates: [Double] = []
        var fewest = Double.infinity
        for _ in 0..<41 {
            let requests = try fleet.requests(count: 1000)
            let (started, allocations) = (ContinuousClock.now, allocations_made())
            for request in requests { _ = try await fleet.service.authenticate(request, for: .status) }
            rates.append(Double(requests.count) / (started.duration(to: .now) / .seconds(1)))
            fewest = min(fewest, Double(allocations_made() - allocations) / Double(requests.count))
        }
        return Measurement(
            "signed request, scheme 1, one after another", perSecond: rates.sorted()[rates.count / 2],
            allocations: fewest)
    }
}
