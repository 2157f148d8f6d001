import AuthContract
import AuthService
import Bytes
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// A snapshot reads one state of the database, although nodes write meanwhile. A restore fills a new database from it.
    @Suite
    struct RestoreTests {
        private let server: PostgreSQLServer
        private let url: String

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
        }

        @Test func `every table and column of the schema is permanent data, or named as something else`() async throws {
            try await PostgreSQLStores.migrate(url)
            let listed = try server.sql(
                """
                SELECT string_agg(table_name || '.' || column_name, ' ') FROM information_schema.columns
                  WHERE table_schema = current_schema()
                """, in: url)
            var columns: [String: Set<String>] = [:]
            for word in listed.split(separator: " ") {
                let parts = word.split(separator: ".").map { String($0) }
                columns[parts[0], default: []].insert(parts[1])
            }
            /// Columns that are not in a backup, because the restore sets them.
            let made = ["signing_keys": ["number"], "evidence": ["number", "size"], "facts": ["name"]]
            let named = Schema.tablesOfNoBackup.union(Schema.ringTables).union([Schema.table])
            #expect(Set(columns.keys).subtracting(named) == Set(StoredTable.allCases.map(\.place)))
            #expect(named.isSubset(of: columns.keys))
            for table in StoredTable.allCases {
                let all = table.columns.filter { !table.lacks($0) }.map(\.name) + (made[table.place] ?? [])
                #expect(columns[table.place] == Set(all), "\(table)")
            }
        }

        /// A database with rows in most tables.
        private func filled() async throws -> PostgreSQLStores {
            let stores = try await open(url)
            for _ in 0..<2 { try await stores.add(try sampleDevice()) }
            let isSet = try await stores.serviceKeys.replaceKeyChecks(
                [], with: try #require(ServiceKey([UInt8](repeating: 1, count: 32))).checks, recording: nil)
            try #require(isSet)
            try server.sql(
                """
                INSERT INTO evidence (id, app_id, recorded_at, expires_at, format, code, step, size, sealed)
                  VALUES ('e', 'com.example.app', 1, 2, 'f', 'c', 's', 3, '\\x010203');
                INSERT INTO signing_keys (id, sealed_key, created_at) VALUES ('z', '\\x00', 1), ('a', '', 2);
                INSERT INTO revoked_signing_keys VALUES ('r', 3);
                INSERT INTO facts VALUES ('write_probe', 'now');
                """, in: url)
            return stores
        }

        private func rows(_ stores: PostgreSQLStores) async throws -> [[StoredTable.Cell]] {
            let found = Locked<[[StoredTable.Cell]]>([])
            try await stores.snapshotWithoutChaining { _, export in
                try export { table, cells in found.withLock { $0.append([.text(table.rawValue)] + cells) } }
            }
            return found.withLock { $0 }
        }

        private func fill(_ url: String, from rows: [[StoredTable.Cell]]) async throws {
            _ = try await PostgreSQLStores.importRows(
                url,
                from: { visit in
                    for row in rows {
                        guard case .text(let name) = row[0], let table = StoredTable(rawValue: name) else { continue }
                        try visit(table, Array(row.dropFirst()))
                    }
                }, lastReading: SystemClock().now)
        }

        @Test func `every row comes back, and events that waited have their place in the chain`() async throws {
            let stores = try await filled()
            let last = try #require(try await stores.audit.link(at: nil)).sequence + 2
            try server.sql(
                """
                INSERT INTO audit_waiting (code, at, actor, app_id, detail)
                  VALUES ('app.added', 1, 'test', 'com.example.app', '{}'), ('app.changed', 2, '', NULL, '{"é": 1}')
                """, in: url)
            let before = try await rows(stores)
            #expect(before.last?[1] == .integer(last))
            #expect(before.count { $0[0] == .text("key_checks") } == 1)
            let new = try server.database()
            try await fill(new, from: before)
            let restored = try await open(new)
            #expect(try await restored.audit.firstBrokenLink() == nil)
            #expect(try await rows(restored).prefix(before.count) == before[...])
            let same = try await stores.audit.link(at: last)
            #expect(try await restored.audit.link(at: last) == same)
            #expect(try server.sql("SELECT string_agg(size::text, '') FROM evidence", in: new) == "3")
            await restored.close()
            await stores.close()
        }

        @Test func `a snapshot does not change while nodes write`() async throws {
            let stores = try await filled()
            let (server, url) = (server, url)
            let (events, end) = (Locked(0), Locked<AuditLink?>(nil))
            try await stores.snapshot { link, export in
                try server.sql(
                    "INSERT INTO audit_waiting (code, at, actor, detail) VALUES ('c', 1, 't', '{}')", in: url)
                try server.sql("SELECT chain_audit(10)", in: url)
                try export { table, _ in if table == .audit { events.withLock { $0 += 1 } } }
                end.withLock { $0 = link }
            }
            let last = try await stores.audit.link(at: nil)
            #expect(end.withLock { $0?.sequence } == last.map { $0.sequence - 1 })
            #expect(events.withLock { Int64($0) } == end.withLock { $0?.sequence })
            await stores.close()
        }

        @Test func `a restored database has a new keeper id, and treats its claims as lost`() async throws {
            let stores = try await filled()
            let rows = try await rows(stores)
            await stores.close()
            let new = try server.database()
            try await PostgreSQLStores.migrate(new)
            let before = try server.sql("SELECT id FROM claim_keeper", in: new)
            try await fill(new, from: rows)
            #expect(try server.sql("SELECT id FROM claim_keeper", in: new) != before)
            let (restored, now) = (try await open(new, clock: SystemClock()), SystemClock().now)
            let device = try sampleDevice()
            // After the backup, requests may have been accepted under a wider future window. So dates beyond the present window
            // are refused too.
            for date in [now - 600, now - 300, now, now + 60, now + 290] {
                let outcome = try await restored.replay.claim(
                    [sampleClaim(device)], of: device.deviceID, timestamp: date, expiresAt: date + 660, now: now,
                    futureWindow: 60, tag: nil)
                guard case .historyLost = outcome else {
                    Issue.record("\(outcome) at \(date.seconds - now.seconds)")
                    continue
                }
            }
            await #expect(throws: StoreOpenError.self) { try await fill(new, from: rows) }
            await restored.close()
        }
    }
}
