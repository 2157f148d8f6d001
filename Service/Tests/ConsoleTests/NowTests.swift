import AuthContract
import AuthServer
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// The first page states in one sentence whether there is a problem.
@Suite struct NowTests {
    @Test func `a service without trouble is quiet`() async throws {
        let page = await (try await Desk().signedIn(.viewer)).get("/console")
        #expect(page.text.contains(#"<h1 class="headline good">Quiet.</h1>"#))
    }

    @Test func `a failed check is the headline`() async throws {
        struct Down: Error, CustomStringConvertible { let description = "the store is down" }
        let desk = try await Desk(readiness: Readiness([.init("replay") { throw Down() }]))
        let page = await (try await desk.signedIn(.viewer)).get("/console").text
        #expect(page.contains(#"<h1 class="headline bad">The check replay fails: "#))
        #expect(page.contains("the store is down"))
    }

    @Test(arguments: [
        (MemoryStores.Call.sumVerdicts, "requests", "No request was judged"),
        (.count, "devices", "There are no apps yet"),
    ])
    func `a part that cannot be read says so, and the others are shown`(
        call: MemoryStores.Call, part: String, wrong: String
    ) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        await desk.stores.fail(call)
        let page = await browser.get("/console")
        #expect(page.status == 200)
        #expect(page.text.contains("<h1 class=\"headline bad\">This page is not complete: "))
        #expect(try #require(page.text.components(after: "<h2 id=\"\(part)\">")).contains("<p class=\"problem\">"))
        #expect(!page.text.contains(wrong) && page.text.contains("<span class=\"name\">replay</span>"))
    }

    @Test func `a credential that ends soon is named to those who may see it`() async throws {
        let desk = try await Desk()
        _ = try await desk.credential(.viewer, name: "the old gateway", life: 2 * 86_400)
        let sentence = "The viewer credential the old gateway ends in 2 days."
        #expect(await (try await desk.signedIn(.admin)).get("/console").text.contains(sentence))
        #expect(await (try await desk.signedIn(.viewer)).get("/console").text.contains(sentence) == false)
    }

    @Test func `codes are verified, refused, observed or not judged`() {
        typealias Outcome = Verdicts.Outcome
        #expect(Outcome("verified") == .accepted && Outcome("ok") == .accepted && Outcome("registered") == .accepted)
        #expect(Outcome("NONCE_REPLAY") == .refused && Outcome("INVALID_SIGNATURE") == .refused)
        #expect(Outcome("observed_NONCE_REPLAY") == .observed)
        #expect(Outcome("SERVICE_UNAVAILABLE") == .failed && Outcome("INTERNAL_ERROR") == .failed)
    }

    @Test(arguments: [(19, 181, false), (20, 181, false), (20, 180, true), (200, 0, true)])
    func `an app is named if a tenth of its requests is refused, and at least 20`(
        refused: Int, verified: Int, isNamed: Bool
    ) {
        func series(_ code: String, _ total: Int) -> JSONValue {
            ["app_id": "a", "code": .string(code), "total": .integer(total), "counts": [.integer(total)]]
        }
        let concerns = Concern.of(
            Verdicts(["series": [series("verified", verified), series("CLOCK_SKEW", refused)]]))
        #expect(concerns.isEmpty != isNamed)
        #expect(concerns.allSatisfy { $0.sentence.hasSuffix("most with CLOCK_SKEW.") })
        // Each concern links to the history of the refused app versions.
        let path = "/console/history?period=day&by=version&compare=yes&app=a&code=CLOCK_SKEW"
        #expect(concerns.allSatisfy { $0.path == path })
    }

    @Test func `the bars of a chart stand on each other and end at its top`() throws {
        let chart = Chart(
            title: "t", start: UnixTime(0), step: 60,
            series: [
                Chart.Series(tone: "good", name: "verified", counts: [1, 3]),
                Chart.Series(tone: "bad", name: "refused", counts: [0, 1]),
            ])
        guard case .object(let value) = chart.value, case .list(let bars) = value["bars"] else {
            Issue.record("no chart")
            return
        }
        let places = bars.map { bar -> [PageValue?] in
            guard case .object(let bar) = bar else { return [] }
            return [bar["y"], bar["height"]]
        }
        #expect(places == [["120.0", "40.0"], ["40.0", "120.0"], ["0.0", "40.0"]])
        #expect(Chart(title: "t", start: UnixTime(0), step: 60, series: []).value == .none)
    }

    @Test(arguments: [
        (0, "now"), (-4, "now"), (-5, "5 seconds ago"), (-119, "119 seconds ago"), (-120, "2 minutes ago"),
        (7200, "in 2 hours"), (86_400, "in 24 hours"), (172_800, "in 2 days"),
    ])
    func `a time is told in its largest unit`(offset: Int64, words: String) {
        #expect(Moment(time: UnixTime(1_000_000 + offset), now: UnixTime(1_000_000)).words == words)
    }
}
