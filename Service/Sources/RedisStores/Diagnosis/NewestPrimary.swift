internal import AuthContract
public import AuthService
internal import RESP

extension RedisStores {
    /// The newest primary of PostgreSQL that the nodes have recorded in this Redis; nil: they have recorded none, or
    /// Redis does not answer in time. A command-line tool needs it, because its new process knows of no earlier failover.
    /// Each answer of Redis may take a second.
    ///
    /// - Parameter url: as for `connect`.
    public static func newestPrimary(_ url: String) async -> PrimaryPlace? {
        var options = Options()
        options.deadline = .seconds(1)
        guard let configuration = try? Configuration(url, options, SystemClock()) else { return nil }
        let authority = configuration.authority
        let placement = try? await authority.placement()
        await authority.close()
        let owners = placement?.owners ?? []
        var newest: PrimaryPlace?
        for endpoint in Set(owners.compactMap { $0 }) {
            guard let first = owners.firstIndex(of: endpoint),
                let connection = try? await RedisConnection.open(endpoint, configuration.settings.connection)
            else { continue }
            defer { connection.close(because: StoreError(.unavailable, "the question was answered")) }
            let command = RESPCommand("HMGET", configuration.partitions[first].epoch, "sys", "tl")
            guard let words = try? await connection.require(command).elements, words.count == 2,
                let system = words[0].text, !system.isEmpty, let timeline = words[1].text.flatMap({ Int64($0) })
            else { continue }
            if timeline > newest?.timeline ?? 0 { newest = PrimaryPlace(system: system, timeline: timeline) }
        }
        return newest
    }
}
