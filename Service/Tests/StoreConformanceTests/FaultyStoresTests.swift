import AuthService
import StoreConformance
import Testing

/// Each fault makes its own check fail.
struct FaultyStoresTests {
    private func failure(of guarantee: String, with fault: FaultyStores.Fault) async throws -> ConformanceFailure? {
        let check = try #require(StoreConformance.checks.first { $0.name == guarantee }, "no check \(guarantee)")
        do { try await check.run(on: FaultyStores(fault: fault).underTest) } catch let failure as ConformanceFailure {
            return failure
        }
        return nil
    }

    private func isCaught(_ fault: FaultyStores.Fault, by guarantee: String) async throws -> Bool {
        try await failure(of: guarantee, with: fault)?.guarantee == guarantee
    }

    @Test func `a store that counts the pending devices of every app fails`() async throws {
        let guarantee = "Devices of another app or with another status do not count as pending"
        #expect(try await isCaught(.countsPendingAcrossApps, by: guarantee))
        #expect(try await isCaught(.countsEveryStatusAsPending, by: guarantee))
    }

    @Test func `a store that counts the devices of all apps fails`() async throws {
        let guarantee = "Device counts match a recount after each random change"
        #expect(try await isCaught(.countsDevicesOfEveryApp, by: guarantee))
    }

    @Test func `a store that finds the devices of apps that the query does not name fails`() async throws {
        let guarantee = "A device is found by its id and by the hash of its id, in the apps of the query alone"
        #expect(try await isCaught(.listsDevicesOfEveryApp, by: guarantee))
    }

    @Test func `a store that lists devices in one order fails`() async throws {
        let guarantee = "Pages list every device once, newest or oldest first, and by id within a second"
        #expect(try await isCaught(.ignoresOrder, by: guarantee))
    }

    @Test(arguments: [
        (MemoryStores.Call.insertApp, "A refused change of an app appends no audit event"),
        (.saveApp, "A refused change of an app appends no audit event"),
        (.insertDevice, "An insertion that is refused has no event"),
        (.save, "A change of a device that is refused has no event"),
        (.recordReceipt, "A newer receipt of the same attested key is not overwritten"),
    ])
    func `a store that records an event for a change that changed nothing fails`(
        call: MemoryStores.Call, guarantee: String
    ) async throws {
        #expect(try await isCaught(.appendsEventAnyway(call), by: guarantee))
    }

    @Test func `a store that records a receipt over a newer one fails`() async throws {
        #expect(
            try await isCaught(
                .overwritesNewerReceipt, by: "A newer receipt of the same attested key is not overwritten"))
    }

    @Test func `a store whose stream of external changes ends fails`() async throws {
        let guarantee = "A stream of external changes stays open while its listener reads"
        #expect(try await isCaught(.endsChanges, by: guarantee))
        #expect(try await isCaught(.hasOneListener(.init()), by: guarantee))
    }

    @Test func `every check has a name of its own and belongs to one store`() {
        let names = StoreConformance.Store.allCases.flatMap { StoreConformance.checks(of: $0) }.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names == StoreConformance.checks.map(\.name))
        for store in StoreConformance.Store.allCases { #expect(!StoreConformance.checks(of: store).isEmpty) }
    }

    @Test func `a query's limit is 1 to 1000, whatever it is set to`() {
        for (limit, bounded) in [(Int.min, 1), (0, 1), (1, 1), (1000, 1000), (1001, 1000), (Int.max, 1000)] {
            var query = DeviceQuery(limit: limit)
            #expect(query.limit == bounded)
            query.limit = 7
            query.limit = limit
            #expect(query.limit == bounded)
        }
    }
}
