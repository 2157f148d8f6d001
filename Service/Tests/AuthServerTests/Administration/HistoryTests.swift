import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// The history of verdicts through the admin API.
@Suite struct HistoryTests {
    private static let now = UnixTime(1_780_272_030)

    private static func span(_ since: Int64?, _ until: Int64? = nil, step: Int64? = nil) throws -> HistorySpan {
        try HistorySpan(
            since: since.map { now + $0 }, until: until.map { now + $0 }, step: step, now: now)
    }

    @Test(
        arguments: [
            (nil, 900, 97), (-3600, 60, 61), (-7200, 60, 121), (-6 * 3600, 300, 73), (-48 * 3600, 3600, 49),
            (-7 * 86_400, 3600, 169), (-30 * 86_400, 21_600, 121), (-90 * 86_400, 86_400, 91), (-1, 60, 1),
        ] as [(Int64?, Int64, Int)]) func `a span has steps that fit its length`(
            since: Int64?, step: Int64, count: Int
        ) throws
    {
        let span = try Self.span(since)
        #expect(span.step == step)
        #expect(span.count == count)
        #expect(span.since.seconds % step == 0 && span.until.seconds % step == 0)
        #expect(span.since <= Self.now + (since ?? -86_400) && span.until >= Self.now)
    }

    @Test(
        arguments: [
            (0, nil, nil), (10, 10, nil), (10, 0, nil), (-3600, nil, 59), (-3600, nil, 61), (-3600, nil, 420),
            (-86_400 * 3, nil, 60), (-86_400 * 3, nil, 1800), (-86_400 * 900, nil, 3600), (-3_600_000_000, nil, nil),
            (0, 999_999_999_999, nil),
        ] as [(Int64, Int64?, Int64?)]) func `a span that the history does not have is refused`(
            since: Int64, until: Int64?, step: Int64?
        ) throws
    {
        #expect(throws: ContractError.self) { try Self.span(since, until, step: step) }
    }

    @Test func `times at the ends of their range are refused, and do not trap`() {
        for (since, until) in [(Int64.min, Int64.max), (0, .max), (.min, 0), (.max, .min)] as [(Int64, Int64)] {
            #expect(throws: ContractError.self) {
                try HistorySpan(since: UnixTime(since), until: UnixTime(until), step: nil, now: Self.now)
            }
        }
    }

    /// Each series of an answer as one text, without its counts.
    private func series(_ answer: RawResponse) -> [String] {
        (answer.json["series"]?.array ?? []).compactMap(\.object).map { one in
            one.members.compactMap { $0.name == "counts" ? nil : $0.value.string ?? $0.value.text() }
                .joined(separator: " ")
        }
    }

    @Test func `requests and registrations are counted by what is proven about them, and each caller sees its apps`()
        async throws
    {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let device = try await TestDevice.register(at: server)
            let backend = try await server.credential(.service, apps: [TestServer.appID])
            let question = try device.question(at: server.clock.now)
            func ask(_ question: JSONValue) async throws {
                _ = try await server.post(.verify, question, [("Authorization", "Bearer \(backend)")])
            }
            for _ in 0..<2 { try await ask(question) }
            try await ask(device.question(at: server.clock.now - 1000))
            let path = Route.status.rawValue
            _ = try await server.send("GET", path, try device.headers("GET", path, at: server.clock.now))
            // This request is counted as app `other`, because anybody can send the name of an app that does not exist.
            _ = try await server.send(
                "GET", path,
                try device.headers("GET", path, at: server.clock.now).map {
                    $0.0 == HeaderName.appID ? ($0.0, "com.example.none") : $0
                })
            var record = TestServer.record
            record["mode"] = "observe"
            #expect(try await server.service.apps.change(AppRecord(JSONFields(.object(record))), actor: "test"))
            try await ask(question)
            await server.service.history.write()
            server.clock.advance(60)
            await server.service.history.write()

            let by = "/history?by=app_id,kind,platform,code,scheme,version"
            let all = try await server.administer("GET", by, viewer)
            #expect(all.status == 200, "\(all.text)")
            let app = "com.example.app"
            let own = [
                "\(app) device ios verified 1 unknown 1",
                "\(app) registration ios registered unknown unknown 1",
                "\(app) verification ios NONCE_REPLAY 1 unknown 1",
                "\(app) verification ios observed_NONCE_REPLAY 1 unknown 1",
                "\(app) verification ios verified 1 unknown 1",
                "\(app) verification unknown CLOCK_SKEW unknown unknown 1",
            ]
            #expect(Set(series(all)) == Set(own + ["other device unknown UNKNOWN_APP unknown unknown 1"]))
            let some = try await server.credential(.viewer, apps: [app])
            #expect(try await Set(series(server.administer("GET", by, some))) == Set(own))
            try await server.addApp("com.example.other")
            let other = try await server.credential(.viewer, apps: ["com.example.other"])
            #expect(try await series(server.administer("GET", by, other)) == [])
            #expect(try await server.administer("GET", "/history?app_id=\(app)", other).status == 403)

            let narrow = "/history?kind=verification&platform=ios&scheme=1&version=unknown&app_id=\(app)"
            let narrowed = try await server.administer("GET", narrow, some)
            #expect(series(narrowed) == ["NONCE_REPLAY 1", "observed_NONCE_REPLAY 1", "verified 1"])
            let coded = try await server.administer("GET", "/history?code=CLOCK_SKEW&by=kind", viewer)
            #expect(series(coded) == ["verification 1"])
            let counts = coded.json["series"]?.array?.first?.object?["counts"]?.array?.compactMap(\.integer) ?? []
            #expect(counts.count == 97 || counts.count == 96, "\(coded.text)")
            #expect(counts.reduce(0, +) == 1)
        }
    }

    @Test func `a question that is malformed is refused`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            for query in [
                "since=soon", "since=9999999999", "step=61", "by=", "by=code,code", "by=verdict", "kind=verify",
                "platform=linux", "scheme=3", "since=0&step=60", "app_id=no/app", "limit=1",
            ] {
                let answer = try await server.administer("GET", "/history?\(query)", viewer)
                #expect(answer.status == 400 && answer.code == "INVALID_REQUEST", "\(query) \(answer.text)")
            }
        }
    }
}
