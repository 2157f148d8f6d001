import AuthContract
import Bytes
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// The URLs, messages and positions of webhooks.
@Suite struct WebhookTests {
    @Test(arguments: [
        ("https://hooks.example.com", "https://hooks.example.com", "hooks.example.com"),
        ("https://Hooks.Example.com:443/a?b=%20", "https://hooks.example.com/a?b=%20", "hooks.example.com"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a", "127.0.0.1"),
        ("http://[::1]:8080?a", "http://[::1]:8080?a", "::1"), ("http://localhost/", "http://localhost/", "localhost"),
    ]) func `a URL is https, or http to this machine`(text: String, normalised: String, host: String) throws {
        let url = try WebhookURL(text)
        #expect(url.text == normalised && url.host == host)
    }

    @Test(arguments: [
        "", "hooks.example.com", "http://hooks.example.com/", "ftp://hooks.example.com/", "https://",
        "https://user:password@hooks.example.com/", "https://hooks.example.com/#a", "https://hooks.example.com/a b",
        "https://hooks.example.com/\n", "https://hooks.example.com\\@evil.example/", "https://h\u{F6}oks.example/",
        "https://hooks.example.com:0/", "https://hooks.example.com:443a/", "file:///etc/passwd",
        "https://" + String(repeating: "a", count: 2048),
    ]) func `any other URL is refused`(text: String) {
        #expect(throws: ContractError.self) { try WebhookURL(text) }
    }

    @Test func `a refused URL with user information says what is wrong`() {
        #expect { try WebhookURL("https://user:password@hooks.example.com/") } throws: {
            "\($0)".contains("user information")
        }
    }

    @Test func `plain http to another machine needs the setting`() throws {
        #expect(try WebhookURL("http://hooks.example.com/", allowingHTTP: true).host == "hooks.example.com")
    }

    @Test func `the signature is that of Standard Webhooks`() throws {
        // The example of the Standard Webhooks specification.
        let message = WebhookMessage(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: Array(#"{"test": 2432232314}"#.utf8))
        let secret = try #require(Base64.standard.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let headers = message.headers(signedWith: secret, at: UnixTime(1_614_265_330))
        #expect(
            headers.map { "\($0.name): \($0.value)" } == [
                "Content-Type: application/json", "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek",
                "webhook-timestamp: 1614265330",
                "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ])
    }

    private static func event(
        _ sequence: Int64, _ device: DeviceID?, _ code: AuditEvent.Code = .deviceRevoked, app: String = World.appID,
        at: UnixTime = World.start, detail: JSONObject = JSONObject()
    ) throws -> RecordedAuditEvent {
        RecordedAuditEvent(
            sequence: sequence,
            event: AuditEvent(code, at: at, actor: "test", appID: try AppID(app), deviceID: device, detail: detail),
            hash: [UInt8](repeating: 7, count: 32))
    }

    private static func webhook(_ scope: CredentialScope = .allApps, _ codes: Set<String> = []) -> Webhook {
        Webhook(
            id: "0123456789abcdef", url: "https://a.example/", scope: scope, codes: codes, sealedSecret: [],
            createdAt: World.start, position: 0)
    }

    @Test func `a message has the event, and leaves a large detail out`() throws {
        let small = WebhookMessage(try Self.event(7, nil, detail: JSONObject([("to", "revoked")])), of: Self.webhook())
        #expect(small.id == "evt_0123456789abcdef_7_0707070707070707")
        let body = try #require(try JSONValue(parsing: small.body).object)
        #expect(body["type"] == "device.revoked" && body["timestamp"] == "2026-06-01T00:00:00Z")
        #expect(body["data"]?.object?["detail"] == ["to": "revoked"])
        #expect(body["data"]?.object?["app_id"] == .string(World.appID))
        let text = JSONValue.string(String(repeating: "a", count: 70_000))
        let large = WebhookMessage(try Self.event(7, nil, detail: JSONObject([("a", text)])), of: Self.webhook())
        #expect(try JSONValue(parsing: large.body).object?["data"]?.object?["detail"] == .null)
    }

    @Test func `events of one device keep their order, and a refused one holds up only its device`() throws {
        let (one, two) = (DeviceID(from: SystemRandom()), DeviceID(from: SystemRandom()))
        let events = try [
            Self.event(1, one), Self.event(2, two), Self.event(3, one), Self.event(4, nil), Self.event(5, two),
        ]
        let webhook = Self.webhook()
        var window = WebhookWindow(position: 0)
        #expect(window.lanes(events, of: webhook).map { $0.map(\.sequence) } == [[1, 3], [2, 5], [4]])
        window.settle([2, 4, 5], in: events, of: webhook)
        #expect(window.position == 0)
        #expect(window.lanes(events, of: webhook).map { $0.map(\.sequence) } == [[1, 3]])
        window.settle([1], in: events, of: webhook)
        #expect(window.position == 2)
        window.settle([3], in: Array(events.dropFirst(2)), of: webhook)
        #expect(window.position == 5)
    }

    @Test func `a webhook gets the events of its apps and codes, and passes the others`() throws {
        let webhook = Self.webhook(.apps([try AppID(World.appID)]), ["device.revoked"])
        let events = try [
            Self.event(1, nil, app: "com.example.other"), Self.event(2, nil, .deviceRegistered), Self.event(3, nil),
        ]
        var window = WebhookWindow(position: 0)
        #expect(window.lanes(events, of: webhook).map { $0.map(\.sequence) } == [[3]])
        window.settle([], in: events, of: webhook)
        #expect(window.position == 2)
        #expect(!webhook.wants(AuditEvent(.deviceRevoked, at: World.start, actor: "test")))
    }

    @Test func `an event is given up after a day of failures, and not before`() throws {
        let events = try [Self.event(1, nil), Self.event(2, nil, at: World.start + 3600)]
        func givenUp(_ since: UnixTime?, _ now: UnixTime) -> Set<Int64> {
            Set(events.filter { WebhookWindow.isGivenUp($0, failingSince: since, at: now) }.map(\.sequence))
        }
        #expect(givenUp(World.start, World.start + 86_399) == [])
        #expect(givenUp(World.start, World.start + 86_400) == [1])
        // The service was down for two days. Since then, the receiver has failed for only one minute, so no event is given up yet.
        #expect(givenUp(World.start + 172_800, World.start + 172_860) == [])
        #expect(givenUp(nil, World.start + 172_860) == [])
    }

    @Test func `events after the removal of an app are those of another app`() throws {
        let events = try [Self.event(1, nil), Self.event(2, nil, .appRemoved), Self.event(3, nil)]
        let app = try AppID(World.appID)
        let cut = WebhookWindow.endingAtRemoval(events, of: Self.webhook(.apps([app])))
        #expect(cut.events.map(\.sequence) == [1, 2] && cut.removed == app)
        // The webhook has named the app since event 3, so the removed app was another one with the same id.
        let later = WebhookWindow.endingAtRemoval(events, of: Self.webhook(.apps([app])), besides: [1, 2])
        #expect(later.events.count == 3 && later.removed == nil)
        #expect(WebhookWindow.endingAtRemoval(events, of: Self.webhook()).events.count == 3)
    }
}
