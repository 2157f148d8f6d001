internal import AuthContract
public import AuthService
internal import RESP

extension RedisStores {
    /// The newest primary of PostgreSQL that the nodes at this Redis use; nil: no node recorded one, or Redis does not answer in
    /// time. A command needs this, because it has not seen a failover itself. Each answer of Redis may take a second.
    ///
    /// - Parameter url: as for `connect`.
    public static func newestPrimary(_ url: String) async -> PrimaryPlace? {
        guard let configuration = try? Configuration(url, .oneQuestion, SystemClock()) else { return nil }
        let answers = try? await configuration.askMasters {
            connection, _, partition throws(StoreError) -> PrimaryPlace? in
            let command = RESPCommand("HMGET", configuration.partitions[partition].epoch, "sys", "tl")
            let words = try await connection.require(command).elements ?? []
            guard words.count == 2, let system = words[0].text, !system.isEmpty,
                let timeline = words[1].text.flatMap({ Int64($0) }), timeline > 0
            else { return nil }
            return PrimaryPlace(system: system, timeline: timeline)
        }
        return answers?.compactMap { try? $0.get() }.max { $0.timeline < $1.timeline }
    }

    /// Why a node could not keep claims in this Redis now; nil: it could. Each answer of Redis may take a second. It writes nothing.
    ///
    /// - Parameter url: as for `connect`.
    public static func trouble(_ url: String) async -> StoreError? {
        let configuration: Configuration
        do throws(StoreOpenError) { configuration = try Configuration(url, .oneQuestion, SystemClock()) } catch {
            return StoreError(.unavailable, error.description)
        }
        do throws(StoreError) {
            let answers = try await configuration.askMasters { connection, endpoint, _ throws(StoreError) in
                try await ServerInfo(of: connection).requireUsable(at: endpoint, configuration.clock.now)
            }
            for answer in answers { try answer.get() }
            return nil
        } catch { return error }
    }
}

extension RedisStores.Options {
    /// For a question that is asked once.
    fileprivate static var oneQuestion: Self {
        var options = Self()
        options.deadline = .seconds(1)
        return options
    }
}

extension RedisStores.Configuration {
    /// Asks each master once, on a connection of its own. `ask` gets the connection, the master, and a partition of it.
    ///
    /// - Throws: if the authority does not name the masters. A master that does not answer, or that is not named, is a failure in the
    ///   result.
    fileprivate func askMasters<Answer: Sendable>(
        _ ask: (RedisConnection, RedisURL.Endpoint, Int) async throws(StoreError) -> Answer
    ) async throws(StoreError) -> [Result<Answer, StoreError>] {
        let authority = authority
        let owners: [RedisURL.Endpoint?]
        do throws(StoreError) { owners = try await authority.placement().owners } catch {
            await authority.close()
            throw error
        }
        await authority.close()
        var answers: [Result<Answer, StoreError>] = []
        for owner in Set(owners) {
            do throws(StoreError) {
                guard let owner, let partition = owners.firstIndex(of: owner) else {
                    throw StoreError(.unavailable, "a part of the Cluster has no master")
                }
                let connection = try await RedisConnection.open(owner, settings.connection)
                defer { connection.close(because: StoreError(.unavailable, "the question was answered")) }
                answers.append(.success(try await ask(connection, owner, partition)))
            } catch { answers.append(.failure(error)) }
        }
        return answers
    }
}
