import AuthContract
import Flutter
import Foundation
import SynheartAuth
import SynheartAuthTestSupport
import Testing

@testable import synheart_auth

@MainActor
@Suite("The iOS half of the Flutter plugin")
struct PluginTests {
    let client = TestClient()
    let engine: Engine

    init() { engine = Engine(client) }

    private static let none = NSNull()
    private static let yes = NSNumber(value: true)

    private func call(_ more: [String: Any] = [:]) -> [String: Any] {
        ["call": Self.none, "appId": "app"].merging(more) { $1 }
    }

    private var registering: [String: Any] { call(["joins": Self.yes]) }

    // MARK: The contract

    @Test func `the plugin's contract equals contract/channel.json`() throws {
        let file = try ContractFile()
        #expect(file.channels == ["calls": Contract.callsChannel, "states": Contract.statesChannel])
        #expect(file.methods.count == Contract.calls.count)
        for (name, call) in Contract.calls {
            #expect(ContractFile.text(call.arguments) == file.arguments(name), "\(name)")
            #expect(call.result.map(ContractFile.text) == file.result(name), "\(name)")
        }
        #expect(ContractFile.text(Contract.stateChange) == file.text(file.root["events"]))
        #expect(ContractFile.text(Contract.errorDetails) == file.text(file.errors["details"]))
        #expect(file.errors["malformed"] as? String == Contract.malformed)
    }

    @Test func `the contract's codes, classes and recoveries are the Swift client's`() throws {
        let file = try ContractFile()
        for row in file.codes {
            let error = SynheartAuthError.fromCode(row["code"] ?? "")
            #expect(!error.code.isFromService)
            #expect(error.className.rawValue == row["seed"])
            #expect(error.recovery.rawValue == row["recovery"])
        }
        #expect(SynheartAuthError.fromCode("ELSE").className.rawValue == "ServerError")
        for (code, recovery) in file.errors["service_recoveries"] as? [String: String] ?? [:]
        where code != "NOT_REGISTERED" {
            #expect(SynheartAuthError.fromCode(code).recovery.rawValue == recovery, "\(code)")
        }
    }

    @Test func `every method takes a message of the contract and answers in the contract's shape`() async throws {
        client.fake.set(.registered, appID: "x")
        _ = await engine.call("registerDevice", call(["joins": Self.yes, "appId": "x"]))
        for (name, method) in Contract.calls.sorted(by: { $0.key < $1.key }) {
            // The previous method may have reset the registration.
            _ = try await client.fake.registerDevice(appID: "x")
            var arguments = Self.valid(method.arguments) as? [String: Any] ?? [:]
            if name == "configure" { arguments["baseUrl"] = "https://auth.example.com" }
            arguments["origins"] = arguments["origins"].map { _ in ["https://api.example.com"] }
            arguments["aliases"] = arguments["aliases"].map { _ in [String]() }
            let answer = await engine.call(name, arguments)
            #expect(answer.isSuccess, "\(name): \(answer)")
            if let shape = method.result { try shape.check(answer.value, name) } else { #expect(answer.value == nil) }
        }
        let called = Set(client.calls.compactMap { $0.split(separator: " ").first.map(String.init) })
        #expect(called == Set(Contract.calls.keys).subtracting(["cancel"]))
    }

    @Test func `the client gets the arguments that Dart sent`() async throws {
        client.fake.set(.registered, appID: "app")
        _ = try await client.fake.registerDevice(appID: "app")
        let body = FlutterStandardTypedData(bytes: Data([9]))
        let signing: [String: Any] = ["method": "POST", "body": body, "scheme": "two", "asserting": Self.yes]
        _ = await engine.call("registerDevice", call(["joins": NSNumber(value: false)]))
        _ = await engine.call("sign", call(signing.merging(["url": "https://a/b?c"]) { $1 }))
        let sending: [String: Any] = [
            "url": "https://a/b?c", "headers": [["name": "A", "value": "b"]], "timeoutMs": NSNumber(value: 1500),
            "maximumAnswer": NSNumber(value: 7),
        ]
        _ = await engine.call("send", call(signing.merging(sending) { $1 }))
        _ = await engine.call("deviceToken", call(["audience": "x"]))
        _ = await engine.call("rotateKey", call(["reason": "compromise"]))
        _ = await engine.call("resetDeviceIdentity", call(["reason": "key_lost"]))
        _ = await engine.call("correctClockSkew", ["serverTimestamp": NSNumber(value: 1.5), "appId": Self.none])
        #expect(
            client.calls == [
                "registerDevice app false", "sign app 2 POST https://a/b?c [9] true",
                "send app 2 POST https://a/b?c A=b [9] 1.5 seconds 7 true", "deviceToken app x",
                "rotateKey app compromise",
                "resetDeviceIdentity app keyLost", "correctClockSkew 1.5 -",
            ])
    }

    @Test func `an absent field, an unknown field, another type and a value beyond its limit are refused`() async {
        var cases = 0
        for (name, method) in Contract.calls {
            for broken in Self.brokenForms(method.arguments, name) {
                let answer = await engine.call(name, broken.value)
                #expect(answer.code == Contract.malformed, "\(broken.place) \(broken.why)")
                #expect(answer.message.contains(broken.place), "\(broken.place) \(broken.why): \(answer.message)")
                cases += 1
            }
        }
        #expect(cases > 300)
        #expect(client.calls.isEmpty)
    }

    @Test func `an unknown method is not implemented`() async {
        guard case .notImplemented = await engine.call("unknown", nil) else {
            Issue.record("it was answered")
            return
        }
    }

    // MARK: Errors

    @Test func `each code of the contract reaches Dart with its details`() async throws {
        for row in try ContractFile().codes {
            let code = row["code"] ?? ""
            client.fake.fail(.registerDevice, with: .fromCode(code, "why"))
            let answer = await engine.call("registerDevice", registering)
            #expect(answer.code == code)
            #expect(answer.message == "why")
            #expect(answer.details["recovery"] as? String == row["recovery"])
            #expect(answer.details["fromService"] as? NSNumber == NSNumber(value: false))
            #expect(answer.details["retryAfterMs"] is NSNull)
            try Contract.errorDetails.check(answer.details, "details")
        }
    }

    @Test func `a code of the service is marked as the service's`() async {
        client.fake.fail(.registerDevice, with: .fromCode("KEY_EXPIRED"))
        let answer = await engine.call("registerDevice", registering)
        #expect(answer.code == "KEY_EXPIRED")
        #expect(answer.details["recovery"] as? String == "rotate")
        #expect(answer.details["fromService"] as? NSNumber == NSNumber(value: true))
    }

    @Test func `an answer that does not fit the channel is ANSWER_TOO_LARGE, and its request may have happened`()
        async throws
    {
        client.fake.set(.registered, appID: "app")
        _ = try await client.fake.registerDevice(appID: "app")
        let headers = HeaderFields((0..<257).map { ("X-\($0)", "y") })
        client.fake.answer("/large", with: TransportResponse(status: 200, headers: headers))
        let answer = await engine.call(
            "send",
            call([
                "method": "GET", "url": "https://a/large", "headers": [Any](),
                "body": FlutterStandardTypedData(bytes: Data()), "scheme": Self.none,
                "asserting": NSNumber(value: false),
                "timeoutMs": NSNumber(value: 1000), "maximumAnswer": NSNumber(value: 0),
            ]))
        #expect(answer.code == "ANSWER_TOO_LARGE")
        #expect(answer.details["mayHaveHappened"] as? NSNumber == NSNumber(value: true))
    }

    // MARK: Configuration

    private func settings(_ baseUrl: String, origins: Set<String> = [], isDevelopment: Bool = false) -> Settings {
        Settings(
            baseUrl: baseUrl, origins: origins, aliases: ["https://old.example.com"], scheme: .two,
            rotatesAutomatically: false,
            developmentMode: isDevelopment)
    }

    @Test func `every setting reaches the configuration`() throws {
        let configuration = try SynheartAuth.Configuration(
            settings("https://auth.example.com", origins: ["https://api.example.com"], isDevelopment: true)
        ) { $0.rotatesAutomatically = true }
        #expect(configuration.baseUrl == "https://auth.example.com")
        #expect(configuration.origins == [try RequestOrigin("https://api.example.com")])
        #expect(configuration.aliases == [try RequestOrigin("https://old.example.com")])
        #expect(configuration.rotatesAutomatically)
        #expect(configuration.scheme == .two)
        #expect(configuration.attestation is DevelopmentAttestation)
        #expect(configuration.keyStore is SoftwareKeyStore)
        #expect(configuration.storage is FileStorage)
        let plain = try SynheartAuth.Configuration(settings("https://auth.example.com")) { _ in }
        #expect(!plain.rotatesAutomatically)
        #expect(!(plain.attestation is DevelopmentAttestation))
        #expect(!(plain.keyStore is SoftwareKeyStore))
    }

    private func configure(_ engine: Engine, _ url: String, _ origins: String...) async -> Answer {
        await engine.call(
            "configure",
            [
                "baseUrl": url, "origins": origins, "aliases": [String](), "scheme": "one",
                "rotatesAutomatically": Self.yes,
                "cloudProjectNumber": Self.none, "androidProof": "either", "developmentMode": NSNumber(value: false),
            ])
    }

    @Test func `a wrong base URL and a wrong origin are NOT_CONFIGURED, and are not remembered`() async {
        for url in ["", "http://example.com", "ftp://example.com", "https://example.com/path"] {
            #expect(await configure(engine, url, "https://api.example.com").code == "NOT_CONFIGURED", "\(url)")
        }
        #expect(await configure(engine, "https://example.com", "no origin").code == "NOT_CONFIGURED")
        #expect(await configure(engine, "https://example.com", "https://api.example.com").isSuccess)
    }

    @Test func `a second configure with the same values changes nothing, in another engine too`() async {
        let configured = Configured()
        let (first, second) = (Engine(client, configured: configured), Engine(client, configured: configured))
        let (url, b, c) = ("https://a.example.com", "https://b.example.com", "https://c.example.com")
        #expect(await configure(first, url, b, c).isSuccess)
        #expect(await configure(second, url, c, b).isSuccess)
        #expect(client.calls == ["configure https://a.example.com"])
        let other = await configure(second, "https://other.example.com", b)
        #expect(other.code == "NOT_CONFIGURED" && other.details["recovery"] as? String == "none")
        #expect(other.message.contains("baseUrl, origins"), "\(other.message)")
        #expect(client.calls.count == 1)
    }

    @Test func `calls work after a hot restart, and detaching one engine leaves the calls of another running`() async {
        let (gate, go) = AsyncStream.makeStream(of: Void.self)
        client.gate = gate
        let other = Engine(client)
        let before = Task { await other.call("registerDevice", call(["joins": Self.yes, "call": NSNumber(value: 1)])) }
        await until { client.calls.count == 1 }
        // Dart starts again: it listens, configures, and numbers its calls anew.
        _ = other.listen { _ in }
        #expect(await configure(other, "https://a.example.com").isSuccess)
        let maintained = await other.call("getState", ["appId": "app"])
        #expect(maintained.isSuccess)
        engine.detach()
        go.finish()
        #expect(await before.value.isSuccess)
    }

    // MARK: Cancellation and the engine's end

    @Test func `cancelling a call ends it with CANCELLED, which is no network error`() async throws {
        client.gate = AsyncStream { _ in }
        let answer = Task {
            await engine.call("registerDevice", call(["joins": Self.yes, "call": NSNumber(value: 7)]))
        }
        await until { client.calls.count == 1 }
        #expect(await engine.call("cancel", ["call": NSNumber(value: 7)]).isSuccess)
        let ended = await answer.value
        #expect(ended.code == Contract.cancelled)
        #expect(ended.details["recovery"] as? String == "none")
        #expect((try ContractFile().errors["cancelled"] as? [String: String])?["code"] == Contract.cancelled)
    }

    @Test func `an error of a send says whether the request may have happened`() async {
        let request = call([
            "method": "GET", "url": "https://a/", "headers": [Any](),
            "body": FlutterStandardTypedData(bytes: Data()), "scheme": Self.none, "asserting": NSNumber(value: false),
            "timeoutMs": NSNumber(value: 1000), "maximumAnswer": NSNumber(value: 0),
        ])
        let codes = ["NETWORK_ERROR": true, "NONCE_REPLAY": true, "SIGNING_FAILED": false, "UNKNOWN_APP": false]
        for (code, expected) in codes {
            client.fake.fail(.send, with: .fromCode(code, "why", mayHaveHappened: expected))
            let sent = await engine.call("send", request)
            #expect(sent.code == code)
            #expect(sent.details["mayHaveHappened"] as? NSNumber == NSNumber(value: expected), "\(code)")
        }
    }

    @Test func `cancelling ends only the call with that id, and frees the id`() async {
        let (gate, go) = AsyncStream.makeStream(of: Void.self)
        client.gate = gate
        let other = Task { await engine.call("registerDevice", call(["joins": Self.yes, "call": NSNumber(value: 2)])) }
        await until { client.calls.count == 1 }
        let second = await engine.call("maintain", call(["call": NSNumber(value: 2)]))
        #expect(second.code == Contract.malformed, "two calls must not share an id")
        _ = await engine.call("cancel", ["call": NSNumber(value: 1)])
        go.finish()
        #expect(await other.value.isSuccess)
        #expect(await engine.call("maintain", call(["call": NSNumber(value: 2)])).isSuccess)
    }

    @Test func `a call gets no reply after its engine was detached`() async {
        client.gate = AsyncStream { _ in }
        let replies = engine.start("registerDevice", registering)
        await until { client.calls.count == 1 }
        engine.detach()
        for _ in 0..<100 { await Task.yield() }
        #expect(replies() == 0)
    }

    // MARK: Events

    @Test func `changes of state reach Dart while it listens`() async throws {
        var events: [[String: Any]] = []
        #expect(engine.listen { if let event = $0 as? [String: Any] { events.append(event) } } == nil)
        client.fake.set(.keyInvalid, appID: "app")
        await until { !events.isEmpty }
        #expect(events.first as? [String: String] == ["appId": "app", "from": "unregistered", "to": "keyInvalid"])
        try Contract.stateChange.check(events.first, "event")

        #expect(engine.cancel() == nil)
        client.fake.set(.registered, appID: "app")
        var later: [[String: Any]] = []
        _ = engine.listen { if let event = $0 as? [String: Any] { later.append(event) } }
        // After a hot restart, Dart listens again without a cancel.
        _ = engine.listen { if let event = $0 as? [String: Any] { later.append(event) } }
        client.fake.set(.unregistered, appID: "app")
        client.fake.set(.registered, appID: "app")
        await until { later.count >= 2 }
        #expect(later.map { $0["to"] as? String } == ["unregistered", "registered"])
        #expect(events.count == 1)
    }

    @Test func `the plugin registers on the contract's channels and is told of the engine's end`() {
        #expect(engine.calls?.name == Contract.callsChannel)
        #expect(engine.published === engine.plugin)
    }

    // MARK: Messages

    /// A value that fits the shape, the description of its type.
    static func valid(_ shape: Shape) -> Any {
        switch shape {
        case .optional: NSNull()
        case .text: "x"
        case .bytes: FlutterStandardTypedData(bytes: Data([1]))
        case .integer(let range): NSNumber(value: range.upperBound)
        case .number: NSNumber(value: 1.5)
        case .flag: NSNumber(value: true)
        case .choice(let values): values.last ?? ""
        case .items(let shape, _): [valid(shape)]
        case .message(let fields): Dictionary(uniqueKeysWithValues: fields.map { ($0.key, valid($0.value)) })
        }
    }

    struct Broken {
        let why: String
        let place: String
        let value: Any
    }

    /// Values that break the shape, at every place in it.
    static func brokenForms(_ shape: Shape, _ place: String, isOptional: Bool = false) -> [Broken] {
        func broken(_ why: String, _ value: Any) -> Broken { Broken(why: why, place: place, value: value) }
        let typed: [(String, Any)] = [
            ("null", NSNull()), ("boolean", NSNumber(value: true)), ("integer", NSNumber(value: Int32(1))),
            ("number", NSNumber(value: 1.5)), ("text", "text"), ("bytes", FlutterStandardTypedData(bytes: Data([1]))),
            ("integers", FlutterStandardTypedData(int32: Data([1, 0, 0, 0]))), ("list", [NSNumber(value: 1)]),
            ("dictionary", ["a": NSNumber(value: 1)]),
        ]
        func others(but kind: String) -> [Broken] {
            typed.filter { $0.0 != kind && !(isOptional && $0.0 == "null") }.map { broken("as \($0.0)", $0.1) }
        }
        switch shape {
        case .optional(let shape): return brokenForms(shape, place, isOptional: true)
        case .text(let max):
            return others(but: "text") + [broken("too long", String(repeating: "x", count: max + 1))]
        case .bytes(let max):
            return others(but: "bytes") + [broken("too long", FlutterStandardTypedData(bytes: Data(count: max + 1)))]
        case .integer(let range):
            return others(but: "integer") + [
                broken("too small", NSNumber(value: range.lowerBound - 1)),
                broken("too large", NSNumber(value: range.upperBound + 1)),
            ]
        case .number:
            return others(but: "number") + [
                broken("not finite", NSNumber(value: Double.nan)),
                broken("not finite", NSNumber(value: Double.infinity)),
            ]
        case .flag: return others(but: "boolean")
        case .choice: return others(but: "none")
        case .items(let item, let max):
            let nested = brokenForms(item, "\(place)[1]")
                .map { Broken(why: $0.why, place: $0.place, value: [valid(item), $0.value]) }
            let long = broken("too long", Array(repeating: valid(item), count: max + 1))
            // A list with one number is still a list. Only its item is wrong.
            return others(but: "list") + [long] + nested
        case .message(let fields):
            let whole = valid(shape) as? [String: Any] ?? [:]
            return others(but: "none") + [broken("with an unknown field", whole.merging(["unknown": 1]) { $1 })]
                + whole.keys.map { key in Broken(why: "absent", place: key, value: whole.filter { $0.key != key }) }
                + fields.flatMap { name, field in
                    brokenForms(field, "\(place).\(name)").map {
                        Broken(why: $0.why, place: $0.place, value: whole.merging([name: $0.value]) { $1 })
                    }
                }
        }
    }
}
