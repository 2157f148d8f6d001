import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// Devices are found by the hashes of their ids.
    @Suite
    struct DeviceHashTests {
        private func query(_ id: DeviceID) -> DeviceQuery {
            var query = DeviceQuery()
            query.deviceHash = DeviceHash(of: id)
            return query
        }

        @Test func `devices that the previous version inserted are found, before and after the migration`() async throws
        {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            let (device, later) = (try sampleDevice(), DeviceID(from: SystemRandom()))
            try await stores.add(device)
            await stores.close()
            // Undoes the migration that added the hashes, and all later ones.
            try server.sql(
                """
                DROP INDEX devices_by_hash;
                ALTER TABLE claim_keeper DROP COLUMN unbound_until;
                DROP FUNCTION read_claim_history_id, unclaimed_end_of_part, settle_claim_keeper;
                DROP FUNCTION is_promoted, renew_claims(bigint, bigint, uuid[], bigint);
                ALTER TABLE claim_history DROP COLUMN judged_at;
                DROP TABLE claim_nodes;
                DROP FUNCTION note_claim_node, claims_went_back, require_claim_node, read_keeper_for_node;
                DELETE FROM synheart_auth_schema WHERE version >= 13
                """, in: url)
            #expect(try await PostgreSQLStores.migrate(url))
            // Inserts a device as a node of the previous version does, which does not know the hash.
            let columns = DeviceRecord.columns.filter { $0 != "device_id" }.joined(separator: ", ")
            try server.sql(
                "INSERT INTO devices (device_id, \(columns)) SELECT '\(later)'::uuid, \(columns) FROM devices", in: url)
            let again = try await open(url)
            for id in [device.deviceID, later] {
                #expect(try await again.devices.devices(query(id)).map(\.deviceID) == [id])
            }
            await again.close()
        }

        @Test func `a search by hash reads the index of hashes alone, also without statistics`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            try await stores.add(try sampleDevice())
            await stores.close()
            let columns = DeviceRecord.columns.filter { $0 != "device_id" }.joined(separator: ", ")
            try server.sql(
                """
                ALTER TABLE devices SET (autovacuum_enabled = false);
                INSERT INTO devices (device_id, \(columns))
                  SELECT gen_random_uuid(), \(columns) FROM devices, generate_series(1, 20000)
                """, in: url)
            for statistics in ["", "ANALYZE devices"] {
                if !statistics.isEmpty { try server.sql(statistics, in: url) }
                for status in [nil, .registered, .pending] as [DeviceStatus?] {
                    for scope in [CredentialScope.allApps, .apps([try AppID("com.example.app")])] {
                        var query = query(DeviceID(from: SystemRandom()))
                        (query.status, query.scope) = (status, scope)
                        let statement = DeviceListing.statement(query)
                        let plan = try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                            let rows = try connection.rows("EXPLAIN " + statement.sql, statement.parameters).rows
                            return try rows.map { try $0.text("QUERY PLAN") }.joined(separator: "\n")
                        }
                        #expect(plan.contains("devices_by_hash") && !plan.contains("Seq Scan"), "\(plan)")
                        #expect(
                            plan.matches(of: /on devices|devices_[a-z_]+/).allSatisfy {
                                ["on devices", "devices_by_hash"].contains($0.0)
                            }, "\(plan)")
                    }
                }
            }
        }
    }
}
