import AuthContract
import AuthService
import Bytes
import StrictJSON
import Testing

@testable import AuthServer
@testable import StoreConformance

extension MemoryStores {
    /// Appends a device's event with this sequence number, as if the log had all events before it.
    fileprivate func skip(to sequence: Int64) {
        let event = AuditEvent(.deviceRegistered, at: clock.now, actor: "device")
        log.append(RecordedAuditEvent(sequence: sequence, event: event, hash: AuditChain.origin))
    }
}

/// The audit log is searched by codes and time: `GET /admin/v1/audit`.
@Suite struct AuditQueryTests {
    private struct Page {
        let sequences: [Int64]
        let next: Int64?

        init(_ answer: RawResponse) {
            #expect(answer.status == 200, "\(answer.text)")
            sequences = (answer.json["events"]?.array ?? []).compactMap { $0.object?["sequence"]?.integer }
            next = answer.json["next_before"]?.integer
        }
    }

    private static func page(_ query: String, _ server: TestServer, _ credential: String) async throws -> Page {
        Page(try await server.administer("GET", "/audit?" + query, credential))
    }

    private static func append(_ codes: AuditEvent.Code..., to server: TestServer) async throws {
        for code in codes {
            try await server.stores.append(
                AuditEvent(code, at: server.clock.now, actor: "test", appID: try AppID(TestServer.appID)))
        }
    }

    @Test func `events are found by one code and by several, in pages, of an app`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            let start = try #require(try await server.stores.link(at: nil)?.sequence)
            try await Self.append(.appChanged, .deviceRevoked, .appChanged, .deviceRejected, to: server)
            func found(_ query: String) async throws -> [Int64] {
                try await Self.page("app_id=\(TestServer.appID)&before=1000&\(query)", server, viewer).sequences
                    .map { $0 - start }.filter { $0 > 0 }
            }
            #expect(try await found("code=app.changed") == [3, 1])
            #expect(try await found("code=device.revoked,app.changed") == [3, 2, 1])
            #expect(try await found("code=device.revoked%2Cdevice.rejected") == [4, 2])
            #expect(try await found("code=webhook.resent") == [])
            let first = try await Self.page("app_id=\(TestServer.appID)&code=app.changed&limit=1", server, viewer)
            #expect(first.sequences == [start + 3] && first.next == start + 3)
            #expect(try await server.administer("GET", "/audit?code=app.changed", viewer).status == 403)
        }
    }

    @Test(arguments: [
        "code=", "code=app.change", "code=APP.CHANGED", "code=app.changed,", "code=app.changed,app.changed",
        "code=app.changed&code=app.added", "code=app.changed%20", "since=yesterday",
    ])
    func `a condition that is mistyped is refused`(_ query: String) async throws {
        try await TestServer.with { server in
            let answer = try await server.administer("GET", "/audit?" + query, try await server.credential(.viewer))
            #expect(answer.status == 400 && answer.code == "INVALID_REQUEST", "\(answer.text)")
        }
    }

    @Test func `one call looks for a code of devices in a bounded number of events, and the next page goes on below`()
        async throws
    {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            try await Self.append(.securityEvent, to: server)
            let rare = try #require(try await server.stores.link(at: nil)?.sequence)
            let end = rare + 2 * AdminRoute.searchedEvents
            await server.stores.skip(to: end)
            let path = "code=security.event&before=\(end + 1)"
            let first = try await Self.page(path, server, viewer)
            #expect(first.sequences == [] && first.next == end - AdminRoute.searchedEvents + 1)
            // A position after the end of the log is treated as its end.
            let afterEnd = try await Self.page("code=security.event&before=\(Int64.max)", server, viewer)
            #expect(afterEnd.next == first.next)
            let second = try await Self.page("code=security.event&before=\(first.next ?? 0)", server, viewer)
            #expect(second.sequences == [] && second.next == rare + 1)
            let third = try await Self.page("code=security.event&before=\(rare + 1)", server, viewer)
            #expect(third.sequences == [rare] && third.next == nil)
            // Without `code` the list has every event.
            #expect(try await Self.page("limit=2", server, viewer).sequences == [end, rare])
        }
    }

    @Test func `events whose codes concern no device are found in the whole log`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            try await Self.append(.serviceKeyRotated, to: server)
            let rare = try #require(try await server.stores.link(at: nil)?.sequence)
            await server.stores.skip(to: rare + 2 * AdminRoute.searchedEvents)
            let page = try await Self.page("code=service_key.rotated,app.removed", server, viewer)
            #expect(page.sequences == [rare] && page.next == nil)
        }
    }

    @Test func `a search ends where the log begins, also if earlier events are archived`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let archived = try #require(try await server.stores.link(at: nil))
            await server.stores.skip(to: archived.sequence + 3 * AdminRoute.searchedEvents)
            #expect(
                try await server.stores.add(
                    StoredAuditArchive(first: 1, last: archived.sequence, hash: archived.hash, seal: "seal")))
            while try await server.stores.removeArchivedEvents(limit: 1000) > 0 {}
            let page = try await Self.page("code=app.added", server, viewer)
            #expect(page.sequences == [] && page.next == nil)
        }
    }

    @Test func `events before a time are left out, and the page is the last one there`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            try await Self.append(.appChanged, to: server)
            let start = try #require(try await server.stores.link(at: nil)?.sequence)
            server.clock.advance(600)
            let since = server.clock.now
            try await Self.append(.appChanged, .deviceRevoked, .appChanged, to: server)
            for time in ["\(since)", since.iso8601] {
                let page = try await Self.page("since=\(time)&code=app.changed", server, viewer)
                #expect(page.sequences == [start + 3, start + 1] && page.next == nil)
            }
            let first = try await Self.page("since=\(since)&limit=2", server, viewer)
            #expect(first.sequences == [start + 3, start + 2] && first.next == start + 2)
            let second = try await Self.page("since=\(since)&limit=2&before=\(start + 2)", server, viewer)
            #expect(second.sequences == [start + 1] && second.next == nil)
            #expect(try await Self.page("since=\(since + 1)", server, viewer).sequences == [])
        }
    }

    @Test func `events of other apps do not decide whether a page is the last one`() async throws {
        try await TestServer.with { server in
            try await server.addApp("com.example.other")
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            let start = server.clock.now
            server.clock.advance(600)
            let since = server.clock.now
            try await server.stores.append(
                AuditEvent(.appChanged, at: since, actor: "test", appID: try AppID("com.example.other")))
            let end = try #require(try await server.stores.link(at: nil)?.sequence) + AdminRoute.searchedEvents + 1
            await server.stores.skip(to: end)
            let path = "app_id=\(TestServer.appID)&code=device.revoked&before=\(end + 1)"
            // Of the events that the next pages would search, only the other app's event is dated at `since` or later. So no
            // further page can have an event of this app.
            #expect(try await Self.page("\(path)&since=\(since)", server, viewer).next == nil)
            #expect(try await Self.page("\(path)&since=\(start)", server, viewer).next != nil)
            #expect(try await Self.page(path, server, viewer).next != nil)
            let nobody = DeviceID(from: SystemRandom())
            #expect(try await Self.page("\(path)&device_id=\(nobody)", server, viewer).next == nil)
        }
    }

    /// Counts the running searches for codes. The first search waits until the test gives `answer` a value.
    private final class Searches: Sendable {
        let asked = OnceValue<Bool>()
        let answer = OnceValue<Bool>()
        /// The number of running searches, and its maximum.
        let running = Locked((now: 0, most: 0))
    }

    private struct SlowLog: AuditLog {
        let log: any AuditLog
        let searches: Searches

        func append(_ event: AuditEvent) async throws(StoreError) { try await log.append(event) }

        func events(
            app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            if codes != nil {
                searches.running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                if searches.asked.give(true) { _ = await searches.answer.value }
                await Task.yield()
                searches.running.withLock { $0.now -= 1 }
            }
            return try await log.events(
                app: app, device: device, codes: codes, after: after, before: before, limit: limit)
        }

        func events(
            app: AppID?, device: DeviceID?, after: Int64, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            try await log.events(app: app, device: device, after: after, limit: limit)
        }

        func firstBrokenLink() async throws(StoreError) -> Int64? { try await log.firstBrokenLink() }

        func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? { try await log.link(at: sequence) }
    }

    @Test func `one search by code runs at a time, those beyond 8 are refused, and other lists do not wait`()
        async throws
    {
        let searches = Searches()
        try await TestServer.with(changing: { $0.audit = SlowLog(log: $0.audit, searches: searches) }) { server in
            let viewer = try await server.credential(.viewer)
            let search: @Sendable () async throws -> RawResponse = {
                try await server.administer("GET", "/audit?code=database.restored", viewer)
            }
            async let first = search()
            #expect(await searches.asked.value)
            try await withThrowingTaskGroup(of: RawResponse.self) { group in
                for _ in 1...QuestionQueue.maximum { group.addTask { try await search() } }
                // The accepted searches wait, so the refused search returns first.
                let refused = try #require(try await group.next())
                #expect(refused.status == 429 && refused.value("retry-after") == "1", "\(refused.text)")
                #expect(try await server.administer("GET", "/audit?limit=1", viewer).status == 200)
                searches.answer.give(true)
                for try await response in group { #expect(response.status == 200, "\(response.text)") }
            }
            #expect(try await first.status == 200)
            #expect(searches.running.withLock(\.most) == 1)
        }
    }
}
