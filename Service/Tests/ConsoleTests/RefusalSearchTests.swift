import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// The search for the reason of a refusal, by a term that the user, the app or the log gives.
@Suite struct RefusalSearchTests {
    private static let path = "/console/refusals"
    private static let uuid = "0d1c2b3a-4958-4776-8594-a3b2c1d0e9f8"

    /// Records a refusal, and returns its id.
    private static func record(of device: String?, app: String = Desk.app, in desk: Desk) async throws -> String {
        let id = DeviceID(from: SystemRandom()).text
        let summary = RecordingSummary(
            id: id, appID: try AppID(app), deviceID: try device.map { try DeviceID($0) }, recordedAt: desk.clock.now,
            expiresAt: desk.clock.now + 86_400, format: "app-attest-assertion", code: "NONCE_MISMATCH", step: "nonce")
        try await desk.stores.keep(RecordedRefusal(summary: summary, sealed: [1]), within: .standard)
        return id
    }

    private static func found(_ text: String, _ browser: Browser, app: String = Desk.app) async -> PageAnswer {
        await browser.get(path + PagePath.query([("app", app), ("find", text)]))
    }

    @Test(arguments: [
        (uuid, RefusalSearch.device(DeviceID(assured: uuid))),
        (uuid.uppercased(), .device(DeviceID(assured: uuid))), ("261E1e6db9703f6c", .hash("261e1e6db9703f6c")),
        ("2026-11-26 21:14", .time(UnixTime(1_795_727_640))), ("2026-11-26 21:14 UTC", .time(UnixTime(1_795_727_640))),
        ("2026-11-26T21:14:05Z", .time(UnixTime(1_795_727_645))),
        (" 2026-11-26 21:14:05\n", .time(UnixTime(1_795_727_645))),
        ("c51a6f75.front-1_x", .request("c51a6f75.front-1_x")), ("261e1e6db9703f6", .request("261e1e6db9703f6")),
        ("2026-11-26", .request("2026-11-26")), ("", nil), ("a b", nil), ("<b>", nil), ("$(id)", nil), ("'", nil),
        ("2026-02-30 21:14", nil), (String(repeating: "a", count: 129), nil), ("é", nil),
    ])
    func `each kind of search term is recognised`(text: String, search: RefusalSearch?) {
        #expect(RefusalSearch(text) == search)
    }

    @Test func `a device's id leads to the device, its recorded refusals and its lines of the log`() async throws {
        let desk = try await Desk()
        let (device, other) = (try await desk.addDevice(), try await desk.addDevice())
        let refusal = try await Self.record(of: device, in: desk)
        let foreign = [try await Self.record(of: other, in: desk), try await Self.record(of: nil, in: desk)]
        let browser = try await desk.signedIn(.operator)
        for app in [Desk.app, ""] {
            let page = await Self.found(" \(device.uppercased())", browser, app: app).text
            #expect(page.contains("href=\"/console/devices/\(Desk.app)/\(device)\""))
            #expect(page.contains("1 of the newest 3 recorded refusals"))
            #expect(page.contains("\(Self.path)/\(Desk.app)/\(refusal)"))
            for id in foreign { #expect(!page.contains(id)) }
            let hash = try DeviceID(device).logged
            #expect(page.contains("grep -F &#39;&quot;device&quot;:&quot;\(hash)&quot;&#39;"))
            #expect(page.contains("grep -F &#39;&quot;request_id&quot;:&quot;\(device)&quot;&#39;"))
        }
        #expect(await Self.found(refusal, browser).text.contains("\(Self.path)/\(Desk.app)/\(refusal)"))
        #expect(await Self.found(Self.uuid, browser).text.contains("NOT_REGISTERED"))
    }

    @Test func `the hash of the log finds its device and the recorded refusals of it`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let refusal = try await Self.record(of: device, in: desk)
        let other = try await Self.record(of: try await desk.addDevice(), in: desk)
        let page = await Self.found(try DeviceID(device).logged, try await desk.signedIn(.operator)).text
        #expect(page.contains(refusal) && page.contains(device) && !page.contains(other))
        #expect(page.contains("href=\"/console/devices/\(Desk.app)/\(device)\"") && !page.contains("NOT_REGISTERED"))
    }

    @Test func `the hash of the log finds a device without recorded refusals, and says if there is none`() async throws
    {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.operator)
        let page = await Self.found(try DeviceID(device).logged.uppercased(), browser, app: "").text
        #expect(page.contains("href=\"/console/devices/\(Desk.app)/\(device)\"") && !page.contains("NOT_REGISTERED"))
        let unknown = await Self.found(try DeviceID(Self.uuid).logged, browser, app: "").text
        #expect(unknown.contains("NOT_REGISTERED") && !unknown.contains("/console/devices/\(Desk.app)/"))
    }

    @Test func `a time finds the recorded refusals of a quarter of an hour around it`() async throws {
        let desk = try await Desk()
        let start = desk.clock.now
        var ids: [String] = []
        for _ in 0..<3 {
            ids.append(try await Self.record(of: nil, in: desk))
            desk.clock.advance(15 * 60 + 1)
        }
        let time = (start + 15 * 60 + 1).iso8601
        let page = await Self.found(time, try await desk.signedIn(.operator)).text
        #expect(page.contains(ids[1]) && !page.contains(ids[0]) && !page.contains(ids[2]))
        #expect(page.contains("--since &#39;") && page.contains("grep -F &#39;&quot;reason&quot;:&#39;"))
    }

    @Test func `the id of a request is in the log alone, and the page says so with the command`() async throws {
        let desk = try await Desk()
        let id = try await Self.record(of: nil, in: desk)
        let page = await Self.found("c51a6f75.front-1", try await desk.signedIn(.operator)).text
        #expect(page.contains("Only the log knows requests by their ids.") && !page.contains(id))
        #expect(
            page.contains(
                "journalctl -u synheart-auth -o cat | grep -F &#39;&quot;request_id&quot;:&quot;c51a6f75.front-1"))
    }

    @Test func `a search term of no known kind is explained, and nothing is listed`() async throws {
        let desk = try await Desk()
        let id = try await Self.record(of: nil, in: desk)
        let page = await Self.found("a b", try await desk.signedIn(.operator))
        #expect(page.status == 200 && page.text.contains("role=\"alert\"") && !page.text.contains(id))
        #expect(page.text.contains("value=\"a b\""))
        // The page cannot show this text unchanged, so the search field stays empty. Otherwise the next search would send another text.
        let hidden = await Self.found("a\u{202e}b", try await desk.signedIn(.operator)).text
        #expect(hidden.contains("name=\"find\" value=\"\"") && hidden.contains("role=\"alert\""))
    }

    @Test func `a search in one app shows nothing of another`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        let device = try await desk.addDevice(of: "com.example.other")
        let refusal = try await Self.record(of: device, app: "com.example.other", in: desk)
        let browser = try await desk.signedIn(.operator, apps: [Desk.app])
        for text in [device, try DeviceID(device).logged, desk.clock.now.iso8601] {
            let own = await Self.found(text, browser).text
            #expect(own.contains("0 of the newest 0") && !own.contains(refusal) && !own.contains("com.example.other"))
            let foreign = await Self.found(text, browser, app: "com.example.other").text
            #expect(foreign.contains("role=\"alert\"") && !foreign.contains(refusal))
        }
    }

    @Test func `the newest refusals refresh themselves, older ones and a search do not`() async throws {
        let desk = try await Desk()
        for _ in 0..<51 { _ = try await Self.record(of: nil, in: desk) }
        let browser = try await desk.signedIn(.operator)
        let page = await browser.get(Self.path).text
        #expect(page.contains("data-refresh=\"15\"") && page.contains("data-live=\"refusals\""))
        let older = String(try #require(page.firstMatch(of: /href="([^"]+cursor=[^"]+)"/)).1)
        for path in [older, "\(Self.path)?find=x"] {
            #expect(await browser.get(path).text.contains("data-refresh") == false)
        }
    }
}

extension DeviceID {
    /// An id whose text the test knows to be valid.
    fileprivate init(assured text: String) { self = (try? DeviceID(text)) ?? DeviceID(from: SystemRandom()) }
}
