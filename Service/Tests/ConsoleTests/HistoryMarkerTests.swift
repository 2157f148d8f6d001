import AuthContract
import AuthServer
import AuthService
import StrictJSON
import Testing

@testable import Console
@testable import StoreConformance

extension MemoryStores {
    /// Appends a device's event with this sequence number, as if the log had all events before it.
    fileprivate func skip(to sequence: Int64) {
        let event = AuditEvent(.deviceRegistered, at: clock.now, actor: "device")
        log.append(RecordedAuditEvent(sequence: sequence, event: event, hash: AuditChain.origin))
    }
}

/// Changes of records, keys, the database and the service's version, marked in the charts of the history.
@Suite struct HistoryMarkerTests {
    private static let path = "/console/history?period=hour"

    /// Adds a count, by default one minute old, so that there is a chart.
    private static func count(_ desk: Desk, ago seconds: Int64 = 60) async throws {
        let verdict = CountedVerdict(
            appID: try AppID(Desk.app), kind: .verification, platform: .ios, code: "verified", scheme: .one,
            version: nil)
        let time = desk.clock.now - seconds
        try await desk.stores.add(
            VerdictBatch(
                id: DeviceID(from: SystemRandom()).text, minute: time - time.seconds % 60, counts: [verdict: 7]))
    }

    private static func append(
        _ code: AuditEvent.Code, to desk: Desk, app: String? = nil, actor: String = "cli", before: JSONValue? = nil,
        after: JSONValue? = nil
    ) async throws {
        var detail = JSONObject()
        if let before { detail["before"] = before }
        if let after { detail["after"] = after }
        try await desk.stores.append(
            AuditEvent(code, at: desk.clock.now, actor: actor, appID: try app.map { try AppID($0) }, detail: detail))
    }

    private static func lines(_ page: String) -> Int { page.matches(of: /<line class="marker"/).count }

    @Test func `a change of a record is a line, and an entry with its members, its author and its event`() async throws
    {
        let desk = try await Desk()
        desk.clock.advance(7200)
        try await Self.append(
            .appChanged, to: desk, app: Desk.app, actor: "admin:abc",
            before: ["app_id": "a", "mode": "observe", "ios": ["app_ids": ["x"]]],
            after: ["app_id": "a", "mode": "enforce", "ios": ["app_ids": ["y"]]])
        desk.clock.advance(600)
        try await Self.append(.signingKeyRotated, to: desk)
        try await Self.append(.deviceRevoked, to: desk, app: Desk.app)
        desk.clock.advance(600)
        try await Self.count(desk)
        let page = await desk.pageText(Self.path)
        #expect(Self.lines(page) == 2)
        #expect(page.contains("App record changed") && page.contains("<code>mode, ios.app_ids</code>"))
        #expect(page.contains("by <code>admin:abc</code>") && page.contains("/console/audit?before=3\">event 2</a>"))
        #expect(page.contains("Signing key added") && !page.contains("<strong>Revoked"))
        #expect(page.contains("Marked: changes 1 to 2.") && page.contains("text-anchor=\"middle\">1</text>"))
        // The app was added more than an hour ago.
        #expect(!page.contains("App added"))
    }

    @Test func `two periods mark the changes of both, numbered in the order of time`() async throws {
        let desk = try await Desk()
        desk.clock.advance(7200)
        try await Self.append(.databaseRestored, to: desk)
        desk.clock.advance(3600)
        try await Self.append(.serviceKeyRotated, to: desk)
        desk.clock.advance(60)
        try await Self.count(desk)
        let page = await desk.pageText(Self.path + "&compare=yes")
        #expect(page.contains("Marked: change 2.") && page.contains("Marked: change 1."))
        let list = try #require(page.components(after: "Changes in this time"))
        let first = try #require(list.firstRange(of: "Database restored"))
        let second = try #require(list.firstRange(of: "Service key rotated"))
        #expect(first.lowerBound < second.lowerBound)
    }

    @Test func `the page of one app marks its changes alone, and a credential sees no other app's`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        desk.clock.advance(60)
        try await Self.append(.signingKeyRevoked, to: desk)
        try await Self.count(desk)
        let all = await desk.pageText(Self.path)
        #expect(all.contains("<code>com.example.other</code>") && all.contains("Signing key revoked"))
        let narrowed = await desk.pageText(Self.path + "&app=\(Desk.app)")
        let scoped = try await desk.signedIn(.viewer, apps: [Desk.app])
        for page in [narrowed, await scoped.get(Self.path).text] {
            #expect(page.contains("App added") && Self.lines(page) == 1)
            #expect(!page.contains("<code>com.example.other</code>") && !page.contains("Signing key revoked"))
            #expect(page.contains("/console/audit?app=\(Desk.app)&amp;before=2"))
        }
    }

    @Test func `the newest 50 changes are marked, however many events of devices there are`() async throws {
        let desk = try await Desk()
        desk.clock.advance(60)
        for _ in 0..<51 { try await Self.append(.appChanged, to: desk, app: Desk.app) }
        desk.clock.advance(60)
        try await Self.count(desk)
        let all = await desk.pageText(Self.path)
        #expect(Self.lines(all) == HistoryMarkers.maximum && all.contains("These are the newest."))
        for _ in 0..<1000 { try await Self.append(.deviceRegistered, to: desk, app: Desk.app) }
        // Events of devices do not count toward the limit of 50 markers.
        #expect(Self.lines(await desk.pageText(Self.path)) == HistoryMarkers.maximum)
        // Events of devices do not hide earlier changes either.
        let end = try #require(try await desk.stores.link(at: nil)?.sequence)
        await desk.stores.skip(to: end + 5 * AdminRoute.searchedEvents)
        #expect(Self.lines(await desk.pageText(Self.path)) == HistoryMarkers.maximum)
    }

    @Test func `a start with another version of the service is marked with both versions`() async throws {
        let desk = try await Desk()
        desk.clock.advance(7200)
        let versions = JSONObject([("from", "1.0.0"), ("to", "1.1.0 <b>")])
        try await desk.stores.append(
            AuditEvent(.serviceVersionChanged, at: desk.clock.now, actor: "service", detail: versions))
        desk.clock.advance(60)
        try await Self.count(desk)
        let page = await desk.pageText(Self.path)
        #expect(Self.lines(page) == 1 && page.contains("<strong>Version of the service changed</strong>"))
        #expect(page.contains("<code>1.0.0 to 1.1.0 &lt;b&gt;</code>") && page.contains("by <code>service</code>"))
    }

    @Test func `labels of lines that are close become one, and the edges stay in the chart`() {
        let start = UnixTime(0)
        func labels(_ times: [Int64]) -> [String] {
            let chart = StackedChart(
                key: "a", title: "a", start: start, step: 60, groups: [], ceiling: 1, length: 60,
                markers: times.enumerated().map { .init(number: $0 + 1, at: start + $1) })
            guard case .object(let members) = chart.value, case .list(let labels)? = members["labels"] else {
                return []
            }
            return labels.map { label in
                guard case .object(let label) = label, case .text(let text)? = label["text"],
                    case .text(let x)? = label["x"], case .text(let anchor)? = label["anchor"]
                else { return "" }
                return "\(text) \(x) \(anchor)"
            }
        }
        #expect(labels([-1, 3600]).isEmpty)
        #expect(labels([0]) == ["1 0% start"])
        #expect(labels([0, 60, 120, 1800, 3599]) == ["1–3 0% start", "4 50% middle", "5 100% end"])
    }

    @Test func `the file has counts alone`() async throws {
        let desk = try await Desk()
        try await Self.count(desk)
        let browser = try await desk.signedIn(.viewer)
        #expect(await browser.get("/console/history/csv?period=hour").text.split(separator: "\r\n").count == 2)
    }

    @Test func `hostile text of an event changes no tag of the page`() async throws {
        func tags(_ text: String) async throws -> [String] {
            let desk = try await Desk()
            try await Self.append(
                .appChanged, to: desk, app: Desk.app, actor: text, before: ["name": "a"], after: ["name": .string(text)]
            )
            try await Self.count(desk)
            return Markup.tags(await desk.pageText(Self.path))
        }
        let harmless = try await tags("harmless")
        for attack in EscapingTests.attacks { #expect(try await tags(attack) == harmless, "\(attack)") }
    }
}
