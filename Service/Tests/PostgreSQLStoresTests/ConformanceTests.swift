import AuthService
import ServiceTestHelpers
import StoreConformance
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct ConformanceTests {
        /// All checks share one database. Each check has its own ids and keys.
        private static let database = Task { try await PostgreSQLServer.shared().database() }

        @Test(arguments: StoreConformance.checks)
        func `the stores in PostgreSQL keep every guarantee`(_ check: ConformanceCheck) async throws {
            let stores = try await open(try await Self.database.value)
            try await check.run(on: stores.underTest)
            await stores.close()
        }
    }
}
