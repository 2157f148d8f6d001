import AuthContract
import AuthServer
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// The page of the history, and its CSV file.
@Suite struct HistoryTests {
    /// Adds counts of a minute that began this many seconds ago.
    private static func add(
        _ counts: [CountedVerdict: Int64], ago seconds: Int64 = 120, to desk: Desk
    ) async throws {
        let time = desk.clock.now - seconds
        let minute = time - time.seconds % 60
        try await desk.stores.add(VerdictBatch(id: DeviceID(from: SystemRandom()).text, minute: minute, counts: counts))
    }

    private static func verdict(
        _ code: String, version: String? = nil, app: String? = Desk.app
    ) throws -> CountedVerdict {
        CountedVerdict(
            appID: try app.map { try AppID($0) }, kind: .verification, platform: .ios, code: code, scheme: .one,
            version: version)
    }

    @Test func `the largest groups have a pattern each and all others share one`() async throws {
        let desk = try await Desk()
        var counts: [CountedVerdict: Int64] = [:]
        for number in 1...11 { counts[try Self.verdict("verified", version: "1.\(number)")] = Int64(number) }
        try await Self.add(counts, to: desk)
        let page = await desk.pageText("/console/history?period=hour&by=version")
        #expect(page.contains("1.11: 11") && page.contains("1.4: 4"))
        #expect(!page.contains("1.3: 3"))
        #expect(page.contains("all others: 6"))
        for pattern in 0...8 { #expect(page.contains("fill=\"url(#pattern-\(pattern))\" x=")) }
        #expect(page.contains("<title id=\"now-title\">") && page.contains("<desc id=\"now-text\">"))
        // The table has the same numbers.
        #expect(page.contains("<th scope=\"row\">1.11</th><td class=\"number\">11</td>"))
    }

    @Test(arguments: HistoryQuestion.periods)
    func `a period ends now, has whole steps, and follows the previous period`(period: HistoryQuestion.Period) {
        for offset in [0, 1, 59, 3599, 86_399] as [Int64] {
            let now = UnixTime(1_800_000_000 + offset)
            let question = HistoryQuestion(PageFields([("period", period.value)]), app: nil, now: now)
            let end = question.since + period.seconds
            #expect(end >= now && end - now < period.step)
            #expect(question.since.seconds % period.step == 0 && period.seconds % period.step == 0)
            #expect(question.previousSince + period.seconds == question.since)
        }
    }

    @Test(arguments: HistoryQuestion.periods)
    func `every period and the one before it is answered`(period: HistoryQuestion.Period) async throws {
        let desk = try await Desk()
        desk.clock.advance(1)
        try await Self.add([try Self.verdict("verified"): 7], to: desk)
        let page = await desk.pageText("/console/history?period=\(period.value)&compare=yes")
        #expect(!page.contains("role=\"alert\""))
        #expect(page.contains("verified: 7"))
        #expect(page.contains("id=\"before-title\"") == period.isComparable)
        #expect(page.contains("no time before the last 90 days") == (period.value == "90-days"))
    }

    @Test func `two periods have the same groups, and the change of each`() async throws {
        let desk = try await Desk()
        try await Self.add([try Self.verdict("verified"): 150, try Self.verdict("NONCE_REPLAY"): 3], to: desk)
        try await Self.add([try Self.verdict("verified"): 100], ago: 4000, to: desk)
        let page = await desk.pageText("/console/history?period=hour&compare=yes")
        #expect(
            page.contains(
                ">verified</th><td class=\"number\">150</td><td class=\"number\">100</td><td class=\"number\">+50 %<"))
        #expect(
            page.contains(
                ">NONCE_REPLAY</th><td class=\"number\">3</td><td class=\"number\">0</td><td class=\"number\">new<"))
        #expect(page.contains("id=\"before-title\""))
    }

    @Test(arguments: [
        (100, 150, "+50 %"), (100, 50, "−50 %"), (0, 5, "new"), (5, 5, "same"), (1000, 1001, "+under 1 %"),
    ])
    func `a change is told in words`(before: Int64, now: Int64, words: String) {
        #expect(HistoryPage.change(from: before, to: now) == words)
    }

    @Test func `a filter narrows the counts, and one that the API refuses is explained`() async throws {
        let desk = try await Desk()
        try await Self.add([try Self.verdict("verified"): 4, try Self.verdict("NONCE_REPLAY"): 9], to: desk)
        let page = await desk.pageText("/console/history?period=hour&code=NONCE_REPLAY")
        #expect(page.contains("NONCE_REPLAY: 9") && !page.contains("verified: 4"))
        #expect(await desk.pageText("/console/history?platform=symbian").contains("role=\"alert\""))
    }

    @Test func `a credential for one app sees only that app's counts`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        try await Self.add(
            [
                try Self.verdict("verified"): 4, try Self.verdict("NONCE_REPLAY", app: "com.example.other"): 9,
                try Self.verdict("UNKNOWN_APP", app: nil): 2,
            ], to: desk)
        let browser = try await desk.signedIn(.viewer, apps: [Desk.app])
        let page = await browser.get("/console/history?period=hour").text
        #expect(page.contains("verified: 4") && !page.contains("NONCE_REPLAY") && !page.contains("UNKNOWN_APP"))
        #expect(!page.contains("com.example.other"))
        #expect(await browser.get("/console/history/csv?period=hour&app=com.example.other").status == 403)
    }

    @Test func `the file has every count that is not 0, and no formula`() async throws {
        let desk = try await Desk()
        try await Self.add(
            [try Self.verdict("verified", version: "=cmd|'/C"): 4, try Self.verdict("verified", version: "1,\"0"): 5],
            to: desk)
        let answer = await (try await desk.signedIn(.viewer)).get("/console/history/csv?period=hour&by=version")
        #expect(answer.status == 200 && answer.contentType.hasPrefix("text/csv"))
        #expect(answer.cacheControl == "no-store" && answer.header("Cross-Origin-Resource-Policy") == "same-origin")
        #expect(answer.header("Content-Disposition") == "attachment; filename=\"history-hour.csv\"")
        let lines = answer.text.split(separator: "\r\n")
        #expect(lines.count == 3 && lines[0] == #""from","until","version","count""#)
        #expect(lines.contains { $0.hasSuffix(#","'=cmd|'/C","4""#) })
        #expect(lines.contains { $0.hasSuffix(#","1,""0","5""#) })
    }

    @Test(arguments: [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("＝1", "'＝1"), ("a=1", "a=1"),
        ("", ""), ("a,b", "a,b"), ("a\"b", "a\"\"b"), ("a\r\nb", "a\\u{d}\\u{a}b"), ("=\u{301}1", "'=\u{301}1"),
        ("\t=1", "\\u{9}'=1"), ("a;=1;+2", "a;'=1;'+2"), ("a\n-1", "a\\u{a}'-1"), (" =1", " '=1"), ("a; =1", "a; '=1"),
    ])
    func `a cell is one cell and no formula`(text: String, cell: String) {
        #expect(CSV.cell(text) == "\"\(cell)\"")
    }

    @Test func `without a session there is no file`() async throws {
        #expect(await Browser(try await Desk()).get("/console/history/csv").status == 303)
    }
}

extension Desk {
    /// The text of a page as a viewer sees it.
    func pageText(_ path: String) async -> String {
        guard let browser = try? await signedIn(.viewer) else { return "" }
        return await browser.get(path).text
    }
}
