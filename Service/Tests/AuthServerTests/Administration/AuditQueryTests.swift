import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer
@testable import StoreConformance

extension MemoryStores {
    /// Appends an event of a device with this number, as if the log had all events before it.
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

    @Test func `one call looks for a code in a bounded number of events, and the next page goes on below`() async throws
    {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            try await Self.append(.serviceKeyRotated, to: server)
            let rare = try #require(try await server.stores.link(at: nil)?.sequence)
            let end = rare + 2 * AdminRoute.searchedEvents
            await server.stores.skip(to: end)
            let path = "code=service_key.rotated&before=\(end + 1)"
            let first = try await Self.page(path, server, viewer)
            #expect(first.sequences == [] && first.next == end - AdminRoute.searchedEvents + 1)
            // A position after the end is the end.
            let afterEnd = try await Self.page("code=service_key.rotated&before=\(Int64.max)", server, viewer)
            #expect(afterEnd.next == first.next)
            let second = try await Self.page("code=service_key.rotated&before=\(first.next ?? 0)", server, viewer)
            #expect(second.sequences == [] && second.next == rare + 1)
            let third = try await Self.page("code=service_key.rotated&before=\(rare + 1)", server, viewer)
            #expect(third.sequences == [rare] && third.next == nil)
            // Without a code nothing is left out.
            #expect(try await Self.page("limit=2", server, viewer).sequences == [end, rare])
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
}
