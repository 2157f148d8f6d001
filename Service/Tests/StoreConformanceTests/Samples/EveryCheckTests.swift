import AuthContract
import AuthService
import StoreConformance
import Testing

private typealias MyStores = MemoryStores

struct EveryCheckTests {
    @Test(arguments: StoreConformance.checks)
    func `my stores keep every guarantee`(_ check: ConformanceCheck) async throws {
        try await check.run(on: StoresUnderTest(MyStores(), now: SystemClock().now))
    }
}
