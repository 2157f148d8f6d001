import AuthService
import CAllocations
import Foundation

/// Measures the complete verification of a signed request. The replay claims go to the journal of the SQLite stores.
enum SignedRequests {
    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder()
        let fleet = try await SignedFleet(folder: folder.url)
        let service = fleet.service
        let alone = try await oneAfterAnother(fleet)
        let together = try await concurrently(
            "signed request, scheme 1, 64 at a time", try fleet.requests(count: 100_000)
        ) { _ = try await service.authenticate($0, for: .status) }
        return [alone, together, try await inTurns(fleet)]
    }

    /// The time that the service takes for a signed request, divided by the time of verifying only its signature. Both
    /// are measured alternately, so that they see the same state of the machine. The result is the median of 400 ratios.
    private static func inTurns(_ fleet: SignedFleet) async throws -> Measurement {
        var ratios: [Double] = []
        for _ in 0..<400 {
            let requests = try fleet.requests(count: 200)
            let signatures = try requests.map(fleet.signature)
            var turns: [Duration] = []
            // The times of the second share replace those of the first share, which only warms the processor's caches.
            for share in [0..<100, 100..<200] {
                let started = ContinuousClock.now
                for index in share { _ = try await fleet.service.authenticate(requests[index], for: .status) }
                let between = ContinuousClock.now
                for index in share { precondition(signatures[index].isValid) }
                turns = [started.duration(to: between), between.duration(to: .now)]
            }
            ratios.append(turns[0] / turns[1])
        }
        return Measurement(
            "signed request, in turns with its verification alone", ratio: ratios.sorted()[ratios.count / 2])
    }

    /// The median rate of 41 rounds of a thousand requests. The requests of a round are signed just before the round. So
    /// they are still in the processor's caches, like a request that a server has just read.
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
