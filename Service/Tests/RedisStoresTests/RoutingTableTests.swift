import AuthContract
import AuthService
import RESP
import Testing

@testable import RedisStores

/// A placeholder for a session.
final class FakeSession: Sendable {
    let name: String

    init(_ name: String = "") { self.name = name }
}

typealias FakeTable = RoutingTable<FakeSession>

extension ServerInfo {
    static func fake(
        run: String = "run", replication: String = "rep", previous: String = "0000", evicted: Int = 0,
        role: String = "master", more: String = "", time: UnixTime = UnixTime(1000)
    ) throws -> ServerInfo {
        try ServerInfo(
            info: """
                run_id:\(run)\nmaster_replid:\(replication)\nmaster_replid2:\(previous)\nevicted_keys:\(evicted)\nrole:\(role)\n\(more)
                """, time: time)
    }
}

@Suite("The routing table")
struct RoutingTableTests {
    private static let now = ContinuousClock.now
    private static let (first, second) = (
        RedisURL.Endpoint(host: "10.0.0.1", port: 1), RedisURL.Endpoint(host: "10.0.0.2", port: 2)
    )
    private static let epoch = Epoch(id: "e", losses: [])

    /// A table whose sessions have a lease of 5 s and routes for their partitions.
    private static func table(
        _ owners: [(RedisURL.Endpoint, FakeSession)], epoch: Epoch = epoch, _ history: ClaimHistoryID? = nil
    ) throws -> FakeTable {
        var table = FakeTable(partitions: owners.count)
        let serverInfo = try ServerInfo.fake()
        table.placed(Placement(owners: owners.map(\.0)))
        var round = FakeTable.Round(partitions: owners.count)
        for (partition, (endpoint, session)) in owners.enumerated() {
            if table.identity(of: session) == nil { table.opened(session, to: endpoint, serverInfo.identity) }
            round.checked(endpoint, .success(session))
            round.confirmed(
                partition,
                .success(.init(session: session, epoch: epoch, identity: serverInfo.identity, history: history)))
        }
        try round.requireAllRoutes()
        #expect(table.publish(round, leaseEnd: now + .seconds(5)).isEmpty)
        return table
    }

    private static func reason(_ body: () throws -> Void) -> String? {
        do { try body() } catch { return (error as? StoreError)?.reason }
        return nil
    }

    @Test func `a session is used within its lease, and not after it`() throws {
        let session = FakeSession()
        let table = try Self.table([(Self.first, session)])
        #expect(try table.route(0, nil, at: Self.now + .seconds(4.9)).session === session)
        #expect(table.holds(0, session, at: Self.now + .seconds(4.9)))
        #expect(throws: StoreError.self) { try table.route(0, nil, at: Self.now + .seconds(5)) }
        #expect(throws: StoreError.self) { try table.requireAllRoutes(nil, at: Self.now + .seconds(5)) }
        #expect(!table.holds(0, session, at: Self.now + .seconds(5)))
        #expect(!table.holds(0, FakeSession(), at: Self.now))
    }

    @Test func `a session that has ended gets no lease any more, and is not known`() throws {
        let session = FakeSession()
        var table = try Self.table([(Self.first, session)])
        table.ended(session)
        #expect(!table.holds(0, session, at: Self.now) && table.known(Self.first) == nil)
        // A check was running when the session ended. Its result arrives only now.
        _ = try table.checked(
            session, .fake(), wasWatched: true, named: nil, at: UnixTime(1000), leaseEnd: Self.now + .seconds(9))
        var round = FakeTable.Round(partitions: 1)
        round.checked(Self.first, .success(session))
        round.confirmed(0, .success(table.routes[0]))
        _ = table.publish(round, leaseEnd: Self.now + .seconds(9))
        #expect(!table.holds(0, session, at: Self.now))
        #expect(throws: StoreError.self) { try table.route(0, nil, at: Self.now) }
    }

    @Test func `a route belongs to one history of claims`() throws {
        let id = ClaimHistoryID("id")
        let table = try Self.table([(Self.first, FakeSession())], id)
        _ = try table.route(0, id, at: Self.now)
        _ = try table.route(0, ClaimHistoryID("id", primary: PrimaryPlace(system: "s", timeline: 2)), at: Self.now)
        for other in [nil, ClaimHistoryID("other")] {
            #expect(throws: StoreError.self) { try table.route(0, other, at: Self.now) }
        }
    }

    @Test func `a partition that moved, or that no majority places, loses its route, and the others keep theirs`()
        throws
    {
        let (first, second) = (FakeSession(), FakeSession())
        for owner in [Self.second, nil] {
            var table = try Self.table([(Self.first, first), (Self.first, first), (Self.second, second)])
            table.placed(Placement(owners: [Self.first, owner, Self.second]))
            #expect(!table.holds(1, first, at: Self.now))
            #expect(Self.reason { _ = try table.route(1, nil, at: Self.now) }?.hasPrefix("a slot") == true)
            #expect(table.holds(0, first, at: Self.now) && table.holds(2, second, at: Self.now))
        }
        var table = try Self.table([(Self.first, first)])
        table.placed(Placement(owners: [Self.second]))
        #expect(Self.reason { _ = try table.route(0, nil, at: Self.now) }?.hasPrefix("Sentinel names") == true)
    }

    @Test func `MOVED drops the route of one partition, and only if it still leads to that session`() throws {
        let (session, other) = (FakeSession(), FakeSession())
        var table = try Self.table([(Self.first, session), (Self.first, session)])
        table.dropRoute(0, to: other)
        #expect(table.holds(0, session, at: Self.now))
        table.dropRoute(0, to: session)
        #expect(!table.holds(0, session, at: Self.now) && table.holds(1, session, at: Self.now))
    }

    @Test func `an invalidated epoch stops claims, and a later epoch stays valid`() throws {
        var table = try Self.table([(Self.first, FakeSession())])
        table.invalidateEpoch(0, Epoch(id: "earlier", losses: []))
        _ = try table.route(0, nil, at: Self.now)
        table.invalidateEpoch(0, Self.epoch)
        #expect(Self.reason { _ = try table.route(0, nil, at: Self.now) }?.contains("lost history") == true)
    }

    @Test func `a slot is only followed to a server in use`() throws {
        let (first, second) = (FakeSession(), FakeSession())
        var table = try Self.table([(Self.first, first), (Self.second, second)])
        #expect(try table.importing(Self.second, at: Self.now) === second)
        #expect(throws: StoreError.self) { try table.importing(Self.second, at: Self.now + .seconds(5)) }
        let unknown = RedisURL.Endpoint(host: "10.0.0.3", port: 3)
        #expect(throws: StoreError.self) { try table.importing(unknown, at: Self.now) }
        table.ended(second)
        #expect(throws: StoreError.self) { try table.importing(Self.second, at: Self.now) }
    }

    /// A server's run id, replication id and previous replication id; whether its session had a lease; the run id that the authority (the
    /// source that names the masters) reports; and whether the session is kept. The session was opened with the ids `run` and `rep`.
    @Test(arguments: [
        ("run", "rep", "0000", true, nil, true), ("run", "rep", "abcd", true, "run", true),
        // The authority (the source that names the masters) reached another process.
        ("run", "rep", "0000", true, "other", false),
        // A proxy leads to another process. The session is kept, because the epoch, which records the server's identity,
        // reveals the other process.
        ("other", "rep", "0000", true, nil, true), ("other", "rep", "0000", true, "other", true),
        // A new backlog of a master that had no replicas.
        ("run", "new", "0000", true, nil, true),
        // A promotion, or a change that this node did not observe.
        ("run", "new", "abcd", true, nil, false), ("run", "new", "0000", false, nil, false),
        ("run", "rep", "0000", false, nil, true),
    ])
    func `a server that was promoted or replaced needs another session`(
        _ run: String, _ replication: String, _ previous: String, _ wasWatched: Bool, _ named: String?, _ isSame: Bool
    ) throws {
        let session = FakeSession()
        var table = try Self.table([(Self.first, session)])
        let serverInfo = try ServerInfo.fake(run: run, replication: replication, previous: previous)
        let outcome = try table.checked(
            session, serverInfo, wasWatched: wasWatched, named: named, at: UnixTime(1000), leaseEnd: Self.now)
        #expect(outcome == isSame)
        #expect(table.identity(of: session) == (isSame ? serverInfo : try .fake()).identity)
    }

    @Test func `a server that may not keep claims is refused`() throws {
        let cases: [(ServerInfo, String)] = [
            (try .fake(role: "slave"), "is a replica"), (try .fake(more: "loading:1"), "is loading"),
            (try .fake(more: "maxmemory:1\nmaxmemory_policy:allkeys-lru"), "may evict"),
            (try .fake(time: UnixTime(1031)), "31 s apart"), (try .fake(time: UnixTime(969)), "31 s apart"),
        ]
        for (serverInfo, text) in cases {
            let session = FakeSession()
            var table = try Self.table([(Self.first, session)])
            let reason = Self.reason {
                _ = try table.checked(
                    session, serverInfo, wasWatched: true, named: nil, at: UnixTime(1000),
                    leaseEnd: Self.now + .seconds(9))
            }
            #expect(reason?.contains(text) == true, "\(reason ?? "none")")
            #expect(!table.hasLease(session, at: Self.now + .seconds(6)))
        }
        for time in [970, 1030] {
            try ServerInfo.fake(time: UnixTime(Int64(time))).requireUsable(at: Self.first, UnixTime(1000))
        }
    }

    @Test
    func `the lease of an unchanged server is extended at its check, that of a changed one at the end of the round`()
        throws
    {
        for (evicted, isExtended) in [(0, true), (1, false)] {
            let session = FakeSession()
            var table = try Self.table([(Self.first, session)])
            _ = try table.checked(
                session, .fake(evicted: evicted), wasWatched: true, named: nil, at: UnixTime(1000),
                leaseEnd: Self.now + .seconds(9))
            #expect(table.hasLease(session, at: Self.now + .seconds(8)) == isExtended)
            // A lease never becomes shorter.
            _ = try table.checked(
                session, .fake(), wasWatched: true, named: nil, at: UnixTime(1000), leaseEnd: Self.now)
            #expect(table.hasLease(session, at: Self.now + .seconds(4)))
        }
    }

    @Test func `a round replaces the sessions, and gives back those that are not used any more`() throws {
        let (old, new, failed) = (FakeSession(), FakeSession(), FakeSession())
        var table = try Self.table([(Self.first, old)])
        let serverInfo = try ServerInfo.fake()
        for session in [new, failed] { table.opened(session, to: Self.second, serverInfo.identity) }
        var round = FakeTable.Round(partitions: 1)
        round.checked(Self.first, .failure(StoreError(.tooSlow, "slow")))
        round.checked(Self.second, .success(new))
        round.confirmed(
            0, .success(.init(session: new, epoch: Self.epoch, identity: serverInfo.identity, history: nil)))
        let unused = table.publish(round, leaseEnd: Self.now + .seconds(5))
        #expect(Set(unused.map(ObjectIdentifier.init)) == [ObjectIdentifier(old), ObjectIdentifier(failed)])
        #expect(table.holds(0, new, at: Self.now) && !table.hasLease(old, at: Self.now))
        #expect(table.wasUsed == [true] && table.lastOwners == [Self.second])
        #expect(Self.reason { try round.requireAllRoutes() } == "slow")
    }

    @Test func `a round that ends after the close gives back its sessions`() throws {
        let (old, new) = (FakeSession(), FakeSession())
        var table = try Self.table([(Self.first, old)])
        let serverInfo = try ServerInfo.fake()
        table.opened(new, to: Self.first, serverInfo.identity)
        #expect(table.close().count == 2)
        var round = FakeTable.Round(partitions: 1)
        round.checked(Self.first, .success(new))
        round.confirmed(
            0, .success(.init(session: new, epoch: Self.epoch, identity: serverInfo.identity, history: nil)))
        #expect(
            table.publish(round, leaseEnd: Self.now + .seconds(5)).map(ObjectIdentifier.init) == [ObjectIdentifier(new)]
        )
        #expect(Self.reason { _ = try table.route(0, nil, at: Self.now) } == "the stores in Redis are closed")
        #expect(table.sessions.isEmpty && !table.hasLease(new, at: Self.now))
    }

    // MARK: Epochs

    @Test func `a round looks up those epochs that the claims do not confirm`() throws {
        let id = ClaimHistoryID("id")
        func step(
            _ history: ClaimHistoryID? = id, epoch: Epoch = Self.epoch, of partition: Int = 1, naming: Set<Int>? = nil,
            replaced: Bool = false, evicted: Int = 0, _ change: (inout FakeTable) -> Void = { _ in }
        ) throws -> String? {
            let (session, other) = (FakeSession(), FakeSession())
            var table = try Self.table([(Self.first, session), (Self.first, session)], epoch: epoch, id)
            _ = try table.checked(
                session, .fake(evicted: evicted), wasWatched: true, named: nil, at: UnixTime(1000), leaseEnd: Self.now)
            change(&table)
            var round = FakeTable.Round(partitions: 2)
            if replaced { table.opened(other, to: Self.first, try ServerInfo.fake().identity) }
            round.checked(Self.first, .success(replaced ? other : session))
            let steps = table.epochSteps(
                Placement(owners: [Self.first, Self.first]), round, history, naming: naming, at: UnixTime(1000))
            return steps.first { $0.partition == partition }.map {
                switch $0.step {
                case .keep: "keep"
                case .confirm: "confirm"
                case .begin(let adopting, let mayName): "begin \(adopting?.replicationID ?? "-") \(mayName)"
                }
            }
        }
        #expect(try step() == "keep")
        #expect(try step(of: 0) == "confirm")
        #expect(try step(epoch: Epoch(id: "e", losses: [1000...1000])) == "confirm")
        #expect(try step(epoch: Epoch(id: "e", losses: [-100_000 ... -100_000])) == "keep")
        #expect(try step { $0.invalidateEpoch(1, Self.epoch) } == "begin rep false")
        #expect(try step { $0.invalidateEpoch(0, Self.epoch) } == "confirm", "another epoch of the server is lost")
        #expect(try step { $0.placed(Placement(owners: [Self.first, nil])) } == "begin - false")
        #expect(try step(ClaimHistoryID("other")) == "begin rep false")
        #expect(try step(nil) == "begin rep false")
        #expect(try step(evicted: 1) == "begin rep false")
        #expect(try step(replaced: true) == "begin - false")
        #expect(try step(ClaimHistoryID("other"), naming: [1]) == "begin rep true")
        #expect(try step(naming: [0]) == nil)
    }

    @Test func `a partition whose slot is being moved has no step, and a move that was seen meanwhile no route`() throws
    {
        let session = FakeSession()
        var table = try Self.table([(Self.first, session), (Self.first, session)])
        var round = FakeTable.Round(partitions: 2)
        round.checked(Self.first, .success(session))
        for partition in 0...1 { round.confirmed(partition, .success(table.routes[partition])) }
        func steps() -> [String] {
            table.epochSteps(
                Placement(owners: [Self.first, Self.first]), round, nil, naming: nil, at: UnixTime(1000)
            ).map { if case .begin = $0.step { "\($0.partition) begin" } else { "\($0.partition)" } }
        }
        table.reported([1], movingAt: Self.second)
        #expect(table.routes[1] == nil && steps() == ["0"])
        _ = table.publish(round, leaseEnd: Self.now)
        #expect(table.routes[0] != nil && table.routes[1] == nil)
        table.reported([], movingAt: Self.second)
        #expect(steps() == ["0", "1 begin"])
        let seen = try #require(table.distrusted[1])
        table.distrust(1)
        table.endedEpoch(of: 1, seen: seen)
        #expect(table.distrusted[1] != nil, "the move was seen again since")
        table.endedEpoch(of: 1, seen: try #require(table.distrusted[1]))
        _ = table.publish(round, leaseEnd: Self.now)
        #expect(table.distrusted[1] == nil && table.routes[1] != nil)
    }

    @Test func `a partition without a usable owner has no step`() throws {
        var round = FakeTable.Round(partitions: 2)
        let table = try Self.table([(Self.first, FakeSession()), (Self.second, FakeSession())])
        round.checked(Self.first, .failure(StoreError(.tooSlow, "slow")))
        #expect(
            table.epochSteps(
                Placement(owners: [Self.first, nil]), round, nil, naming: nil, at: UnixTime(1000)
            ).isEmpty)
        #expect(Self.reason { try round.requireAllRoutes() } == "slow")
        round = FakeTable.Round(partitions: 1)
        #expect(Self.reason { try round.requireAllRoutes() }?.hasPrefix("no majority") == true)
    }

    @Test func `partitions that lack the history's id get a new one, unless a part of the Cluster has it`() throws {
        let route = try #require(try Self.table([(Self.first, FakeSession())]).routes[0])
        var round = FakeTable.Round(partitions: 2)
        #expect(round.naming == nil)
        round.confirmed(0, .success(nil))
        #expect(round.naming == .newID && round.lacking == [0])
        round.confirmed(1, .success(route))
        #expect(round.naming == .sameID)
        round.confirmed(0, .failure(StoreError(.tooSlow, "slow")))
        #expect(round.naming == .sameID && round.failure?.reason == "slow")
        round.confirmed(0, .success(route))
        #expect(round.naming == nil)
        // The reported reason is the unusable server, and not the epochs of other servers.
        round.checked(Self.first, .failure(StoreError(.unavailable, "gone")))
        #expect(round.failure?.reason == "gone")
    }

    @Test func `an epoch is confirmed by its id, its keeper and, in the first partition of a server, its primary`()
        throws
    {
        let history = ClaimHistoryID("id", primary: PrimaryPlace(system: "s", timeline: 2))
        let route = try #require(try Self.table([(Self.first, FakeSession())], history).routes[0])
        func isConfirmed(
            _ words: [String], _ primary: PrimaryPlace? = history.primary, _ history: ClaimHistoryID? = history
        ) -> Bool { route.isConfirmed(by: .array(words.map { .simple($0) }), history, primary) }
        #expect(isConfirmed(["e", "id", "s", "2", ""]))
        // The unclaimed end (the latest date of a lost claim that PostgreSQL may lack) of another epoch is ignored. A node of
        // the previous version leaves that end in Redis when the node begins a new epoch.
        #expect(isConfirmed(["e", "id", "s", "2", "d 1 100"]))
        for words in [
            ["f", "id", "s", "2", ""], ["e", "other", "s", "2", ""], ["e", "id", "t", "2", ""],
            ["e", "id", "s", "3", ""], ["e", "id", "s", "2", "e 1 100"], ["e", "id", "s", "2"],
            ["e", "id", "s", "2", "", ""], [],
        ] { #expect(!isConfirmed(words)) }
        #expect(isConfirmed(["e", "id", "t", "3", ""], nil))
        #expect(isConfirmed(["e", "id", "", "", ""], nil, ClaimHistoryID("id")))
        #expect(isConfirmed(["e", "", "", "", ""], nil, nil))
        #expect(!isConfirmed(["e", "id", "", "", ""], nil, nil))
        #expect(!route.isConfirmed(by: .null, history, nil))
    }

    @Test func `the answers of the script that begins an epoch are read strictly`() {
        #expect(EpochAnswer(.null) == .needsHistory)
        #expect(EpochAnswer(.integer(0)) == .lacksID && EpochAnswer(.integer(3)) == .newerTimeline(3))
        #expect(EpochAnswer(.integer(-1000)) == .unsettledTimeline(at: 1000))
        #expect(EpochAnswer(.integer(.min)) == .unsettledTimeline(at: .min))
        #expect(
            EpochAnswer(.array([.simple("e"), .simple("5,6"), .simple("")]))
                == .epoch(Epoch(id: "e", losses: [5...5, 6...6])))
        for damaged in [
            RESPValue.simple("e"), .array([.simple("e")]), .array([.simple("e"), .simple("x"), .simple("")]),
            .array([.null, .simple(""), .simple("")]), .array([.simple("e"), .simple("")]),
            .array([.simple("e"), .simple(""), .null]),
            .array([.simple("e"), .simple(""), .simple(""), .simple("")]),
        ] { #expect(EpochAnswer(damaged) == nil) }
    }

    @Test func `a reading of a clock that jumped stays unrecorded until each partition has it`() throws {
        var clocks = ClockWatch(partitions: 3)
        func read(_ time: Int64, run: String = "run", after seconds: Int) throws -> Bool {
            let instant = Self.now + .seconds(seconds)
            return clocks.read(
                try .fake(run: run, time: UnixTime(time)), of: Self.first, [0, 2], asked: instant, answered: instant,
                clockOfNode: UnixTime(1000 + Int64(seconds)))
        }
        #expect(try !read(1000, after: 0))
        #expect(try read(1100, after: 1))
        #expect((0..<3).map { clocks.unrecorded($0) } == [UnixTime(1100), nil, UnixTime(1100)])
        clocks.recorded(UnixTime(1099), in: 0)
        #expect(clocks.unrecorded(0) == UnixTime(1100))
        clocks.recorded(UnixTime(1100), in: 0)
        #expect(clocks.unrecorded(0) == nil && clocks.unrecorded(2) == UnixTime(1100))
        // Each reading must be recorded until all partitions have a recorded reading. After that, the next record is due
        // after a pause of 10 s.
        #expect(try read(1101, after: 2))
        #expect(clocks.unrecorded(2) == UnixTime(1101))
        clocks.recordedAll(of: Self.first, at: Self.now + .seconds(2))
        #expect(try !read(1102, after: 3))
        #expect(try read(1111, after: 12))
        // Another process has a different clock.
        #expect(try !read(1012, run: "other", after: 12))
    }

    @Test func `pauses double up to the interval, each shortened by a random factor`() {
        var pace = RoundPace(interval: .seconds(1), retryInterval: .milliseconds(50))
        #expect(pace.succeeded() == (false, .seconds(1)))
        var pauses: [Duration] = []
        for number in 0..<6 {
            let (isFirst, pause) = pace.failed(1)
            #expect(isFirst == (number == 0))
            pauses.append(pause)
        }
        #expect(pauses == [100, 200, 400, 800, 1000, 1000].map { .milliseconds($0) })
        #expect(pace.failed(0.5).pause == .milliseconds(500))
        #expect(pace.succeeded() == (true, .seconds(1)))
        #expect(pace.succeeded() == (false, .seconds(1)) && pace.failures == 0)
        pace = RoundPace(interval: .seconds(3600), retryInterval: .milliseconds(50))
        for _ in 0..<100 { _ = pace.failed(1) }
        #expect(pace.failed(1).pause == .milliseconds(50 * 64))
    }
}
