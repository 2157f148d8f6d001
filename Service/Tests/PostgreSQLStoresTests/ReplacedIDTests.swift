import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// A promoted replica lacks the last change of the keeper (the store of the claims). So the keeper's row there has
    /// the previous id of the claims' history again.
    @Suite
    struct ReplacedIDTests {
        private static let redis = ClaimPlace("redis://h:6379/0?prefix=p:")

        private let server: PostgreSQLServer
        private let url: String

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
        }

        /// A node that uses a Redis. This Redis is the keeper (the store of the claims). The node does not read the keeper's
        /// row in the background.
        private func node() async throws -> (stores: PostgreSQLStores, watch: KeeperWatch) {
            var options = PostgreSQLStores.Options.patient
            options.claims = Self.redis
            options.vacancy = .seconds(3600)
            let stores = try await open(url, options: options, clock: SystemClock())
            let watch = try #require(stores.keeper as? KeeperWatch)
            watch.finish()
            await watch.read()
            return (stores, watch)
        }

        private func name(_ place: ClaimPlace, _ stores: PostgreSQLStores) async throws {
            _ = try await stores.setKeeper(place, actor: "test")
        }

        /// Sets the keeper's row back to an earlier id and to Redis, as on a replica that was promoted before it received the
        /// change of the keeper.
        private func goBack(to id: String) throws {
            try server.sql(
                "UPDATE claim_keeper SET id = '\(id)', ruled_id = '\(id)', place = '\(Self.redis)'", in: url)
        }

        @Test func `an id that was replaced when another store became the keeper is not reused`() async throws {
            let (stores, watch) = try await node()
            let id = try watch.current().text
            try await name(.postgresql, stores)
            await watch.read()
            #expect(throws: StoreError.self) { try watch.current() }
            try goBack(to: id)
            await watch.read()
            let new = try watch.current().text
            #expect(new != id)
            #expect(try await stores.namedKeeper().id == new)
            await stores.close()
        }

        @Test func `an id that was replaced by the same store's next one is not used again`() async throws {
            let (stores, watch) = try await node()
            let id = try watch.current()
            let next = try #require(try await watch.renew(id))
            try goBack(to: id.text)
            await watch.read()
            #expect(try ![id.text, next.text].contains(watch.current().text))
            await stores.close()
        }

        @Test func `a store that an operator names again is used under its new id`() async throws {
            let (stores, watch) = try await node()
            for place in [.postgresql, Self.redis] {
                try await name(place, stores)
                await watch.read()
            }
            #expect(try await stores.namedKeeper().id == watch.current().text)
            await stores.close()
        }
    }
}
