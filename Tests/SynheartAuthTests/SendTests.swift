import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `send`: signs, sends, and recovers once from each refusal that a new signature can solve.
@Suite struct SendTests {
    static let api = "https://api.test"
    static let origins = Set([api].compactMap { try? RequestOrigin($0) })

    private func registered(_ scheme: SignatureScheme = .one) async throws -> (Phone, SynheartAuth, String) {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = Self.origins
            $0.scheme = scheme
        }
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        return (phone, sdk, id)
    }

    private func request(
        _ url: String = "\(Self.api)/v1/readings?day=1", method: String = "POST"
    ) -> TransportRequest {
        TransportRequest(
            method: method, url: url, headers: HeaderFields([("Content-Type", "application/json")]),
            body: Array("{}".utf8))
    }

    @Test("data(for:) sends a URLRequest and gives what URLSession gives")
    func data() async throws {
        let (phone, sdk, _) = try await registered()
        var request = URLRequest(url: try #require(URL(string: "\(Self.api)/v1/readings?day=1")))
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let (data, response) = try await sdk.data(for: request, appID: Phone.app)
        #expect(data == Data("ok".utf8) && response.statusCode == 200 && response.url == request.url)
        #expect(response.value(forHTTPHeaderField: "X-Synheart-Server-Time") != nil)
        #expect(await phone.service.requests.last?.headers.values("Content-Type") == ["application/json"])
        await phone.service.answer(
            path: "/v1/readings?day=1", with: await phone.service.answer(FakeService.Refusal(.keyExpired)))
        #expect(try await sdk.data(for: request, appID: Phone.app).1.statusCode == 200, "it recovers")
    }

    @Test("a request to a listed origin is signed and answered; the host's own headers stay")
    func sends() async throws {
        let (phone, sdk, _) = try await registered()
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        let sent = try #require(await phone.service.requests.last)
        #expect(sent.headers.values("Content-Type") == ["application/json"])
        #expect(sent.headers.values("X-Synheart-Signature").count == 1)
        #expect(await phone.service.accepted == ["\(Self.api)/v1/readings?day=1"])
    }

    @Test(
        "nothing is signed for an origin that is not listed, nor over plain http",
        arguments: [
            "https://evil.test/v1", "http://api.test/v1", "https://api.test:8443/v1", "https://api.test@evil.test/",
            "https://api.test.evil.test/", "//api.test/", "/v1", "", "https:/api.test/", "https://api.test/#f",
            "https://api.test\\@evil.test/",
        ])
    func origins(url: String) async throws {
        let (phone, sdk, _) = try await registered()
        let before = await phone.network.messages
        await expectError(.signingFailed) { try await sdk.send(request(url), appID: Phone.app) }
        await expectError(.signingFailed) {
            try await sdk.sign(appID: Phone.app, method: "GET", url: url).fields.count
        }
        #expect(await phone.network.messages == before)
    }

    @Test("send refuses rotation and deregistration", arguments: SignatureScheme.allCases)
    func reserved(scheme: SignatureScheme) async throws {
        let (_, sdk, _) = try await registered(scheme)
        for (method, route) in [("POST", Route.rotateKey), ("DELETE", Route.device)] {
            await expectError(.signingFailed) {
                try await sdk.send(
                    request(FakeService.origin + route.rawValue, method: method), appID: Phone.app)
            }
        }
    }

    @Test(
        "send refuses malformed headers, and those of the transport and the signature",
        arguments: [
            ("", "1"), ("A b", "1"), ("A:", "1"), ("Ä", "1"), ("A\r\nB", "1"), ("A", "1\r\nB: 2"), ("A", "1\n2"),
            ("A", "1\u{0}2"), ("A", "1\u{7F}"), ("Host", "evil.test"), ("content-length", "0"), ("Content-Length", "2"),
            ("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Keep-Alive", "1"), ("Upgrade", "h2c"),
            ("TE", "trailers"), ("Trailer", "A"), ("Proxy-Connection", "close"), ("X-App-ID", "a"),
            ("x-device-id", "a"), ("X-Synheart-Signature", "a"), ("X-Synheart-Timestamp", "1"),
            ("X-SYNHEART-NONCE", "a"), ("X-Synheart-Sig-Version", "2"), ("Signature", "a"), ("Signature-Input", "a"),
            ("X-Synheart-Assertion", "a"),
        ])
    func refusedHeaders(name: String, value: String) async throws {
        let request = TransportRequest(
            method: "POST", url: "\(Self.api)/v1/readings", headers: HeaderFields([("X-Mine", "1"), (name, value)]),
            body: Array("{}".utf8))
        for scheme in SignatureScheme.allCases {
            let (phone, sdk, _) = try await registered(scheme)
            let before = await phone.network.messages
            let error = await expectError(.signingFailed) { try await sdk.send(request, appID: Phone.app) }
            #expect(error?.mayHaveHappened == false)
            #expect(await phone.network.messages == before)
        }
    }

    @Test("the host may send Content-Digest under scheme 1 alone, and values may have tabs")
    func allowedHeaders() async throws {
        let (phone, sdk, _) = try await registered()
        let headers = HeaderFields([("Content-Digest", "mine"), ("X-Mine", "a\tb")])
        let request = TransportRequest(method: "GET", url: "\(Self.api)/v1/readings", headers: headers, body: [])
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        let sent = try #require(await phone.service.requests.last)
        #expect(sent.headers.values("Content-Digest") == ["mine"] && sent.headers.values("X-Mine") == ["a\tb"])
        let (_, other, _) = try await registered(.two)
        await expectError(.signingFailed) { try await other.send(request, appID: Phone.app) }
    }

    @Test("after CLOCK_SKEW from a backend send asks the auth service, learns the clock and signs again")
    func clockSkew() async throws {
        let (phone, sdk, _) = try await registered()
        phone.clock.setError(.seconds(7200))
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        #expect(await phone.service.count(.status) >= 1)
    }

    @Test(
        "a request that was signed before another call learned the clock is signed again",
        arguments: [Self.api, FakeService.origin])
    func clockSkewOfTwo(origin: String) async throws {
        let phone = Phone()
        let transport = CallDeadlineTests.HeldTransport(phone.network, holding: "/v1/later")
        let sdk = try phone.launch {
            $0.origins = Self.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        phone.clock.setError(.seconds(7200))
        let later = request(origin + "/v1/later")
        let send = Task { try await sdk.send(later, appID: Phone.app).status }
        try await eventually { await transport.waiting == 1 }
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        await transport.letGo()
        #expect(try await send.value == 200)
    }

    @Test("after CLOCK_SKEW from the auth service send learns the clock from the body")
    func clockSkewFromAuth() async throws {
        let (phone, sdk, _) = try await registered()
        phone.clock.setError(.seconds(-7200))
        #expect(try await sdk.send(request(FakeService.origin + "/v1/own"), appID: Phone.app).status == 200)
        #expect(await phone.service.count(.status) == 0)
    }

    @Test("a backend's CLOCK_SKEW is its answer if the clock is right for the auth service, and changes nothing")
    func hostileClockSkew() async throws {
        let (phone, sdk, _) = try await registered()
        let lie = ErrorBody(
            code: "CLOCK_SKEW", message: "", requestID: "", serverTimestamp: UnixTime(TestClock.start / 1000 + 80_000))
        await phone.service.answer(path: "/v1/readings?day=1", with: TransportResponse(status: 401, body: lie.bytes))
        #expect(try await sdk.send(request(), appID: Phone.app).status == 401)
        #expect(await phone.service.count(.status) == 1)
        #expect(try phone.record().clockOffset == ClockOffset.none)
    }

    @Test(
        "after NONCE_REPLAY send signs again, once, where a second effect does no harm",
        arguments: [
            ("GET", false), ("HEAD", false), ("OPTIONS", false), ("PUT", false), ("DELETE", false), ("POST", true),
        ])
    func nonceReplay(method: String, isKeyed: Bool) async throws {
        let (phone, sdk, _) = try await registered()
        let refusal = await phone.service.answer(FakeService.Refusal(.nonceReplay))
        await phone.service.answer(path: "/v1/readings?day=1", with: refusal)
        let request = TransportRequest(
            method: method, url: "\(Self.api)/v1/readings?day=1",
            headers: HeaderFields(isKeyed ? [("idempotency-key", "1")] : []), body: [])
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        let nonces = await phone.service.requests.suffix(2).map { $0.headers.values("X-Synheart-Nonce") }
        #expect(Set(nonces).count == 2)
        await phone.service.answer(path: "/v1/readings?day=1", with: refusal, times: 2)
        let error = await expectError(.nonceReplay) { try await sdk.send(request, appID: Phone.app) }
        #expect(error?.mayHaveHappened == true)
    }

    @Test(
        "after NONCE_REPLAY a POST or PATCH is not signed again: a copy was accepted",
        arguments: ["POST", "PATCH", "post"])
    func nonceReplayOfWrite(method: String) async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.answer(
            path: "/v1/readings?day=1", with: await phone.service.answer(FakeService.Refusal(.nonceReplay)))
        let sent = await phone.service.requests.count
        let error = await expectError(.nonceReplay) { try await sdk.send(request(method: method), appID: Phone.app) }
        #expect(error?.mayHaveHappened == true && error?.code == .nonceReplay)
        #expect(error?.recovery == SynheartAuthError.Recovery.none, "the host would run the request twice")
        #expect(await phone.service.requests.count == sent + 1)
    }

    @Test(
        "mayHaveHappened is false only for a refusal that comes before a request is accepted",
        arguments: [
            (ErrorCode.misdirectedRequest, false), (.deviceRevoked, false), (.nonceReplay, true),
        ])
    func mayHaveHappened(code: ErrorCode, mayHave: Bool) async throws {
        let (phone, sdk, id) = try await registered()
        if code == .deviceRevoked { await phone.service.edit(id) { $0.status = .revoked } }
        await phone.service.answer(
            path: "/v1/readings?day=1", with: await phone.service.answer(FakeService.Refusal(code)))
        let error = await expectError(RetryTable.reported(code)) { try await sdk.send(request(), appID: Phone.app) }
        #expect(error?.mayHaveHappened == mayHave)
    }

    @Test("without an answer, or with one that is too large, a request may have happened", arguments: [true, false])
    func unanswered(isTooLarge: Bool) async throws {
        struct Failing: HTTPTransport {
            let base: any HTTPTransport
            let error: TransportError
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                if request.url.hasPrefix(FakeService.origin) { return try await base.send(request) }
                throw error
            }
        }
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = Self.origins
            $0.transport = Failing(base: phone.service, error: isTooLarge ? .tooLarge : TransportError("gone"))
        }
        try await sdk.registerDevice(appID: Phone.app)
        let error = await expectError(isTooLarge ? .answerTooLarge : .networkError) {
            try await sdk.send(request(), appID: Phone.app)
        }
        #expect(error?.mayHaveHappened == true)
    }

    @Test("X-Synheart-Error is read only at status 400 or above", arguments: [200, 204, 302, 399])
    func errorHeader(status: Int) async throws {
        let (phone, sdk, _) = try await registered()
        let answer = TransportResponse(status: status, headers: HeaderFields([("X-Synheart-Error", "NONCE_REPLAY")]))
        await phone.service.answer(path: "/v1/readings?day=1", with: answer)
        #expect(try await sdk.send(request(), appID: Phone.app) == answer)
    }

    @Test(
        "MISDIRECTED_REQUEST is a configuration error that names the origin, and changes nothing",
        arguments: [SignatureScheme.one, .two])
    func misdirected(scheme: SignatureScheme) async throws {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = Self.origins
            $0.scheme = scheme
        }
        // The registration request is not signed, so `scheme` does not affect it.
        try await sdk.registerDevice(appID: Phone.app)
        let before = try phone.record()
        await phone.service.answer(
            path: "/v1/readings?day=1", with: await phone.service.answer(FakeService.Refusal(.misdirectedRequest)))
        let sent = await phone.service.requests.count
        let error = await expectError(.server("MISDIRECTED_REQUEST")) {
            try await sdk.send(request(), appID: Phone.app)
        }
        #expect(error?.message.contains(Self.api) == true && error?.className == .serverError)
        #expect(error?.recovery == SynheartAuthError.Recovery.none)
        #expect(await phone.service.requests.count == sent + 1)
        #expect(try phone.record() == before)
    }

    @Test(
        "MISDIRECTED_REQUEST of the SDK's own calls names the origin, and the identity stays", arguments: Route.allCases
    )
    func misdirectedOwnCall(route: Route) async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        if [Route.challenge, .register].contains(route) {
            await phone.service.refuse(route, .misdirectedRequest)
            let error = await expectError(.server("MISDIRECTED_REQUEST")) {
                try await sdk.registerDevice(appID: Phone.app)
            }
            #expect(error?.message.contains(FakeService.origin) == true)
            #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
            return
        }
        if route == .status { await phone.service.set { $0.decision = .pending } }
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        await phone.service.refuse(route, .misdirectedRequest)
        let error: SynheartAuthError?
        switch route {
        case .status:
            error = await expectError(.server("MISDIRECTED_REQUEST")) { try await sdk.registerDevice(appID: Phone.app) }
            #expect(try phone.record().identity == .pending)
        case .rotateKey:
            error = await expectError(.server("MISDIRECTED_REQUEST")) { try await sdk.rotateKey(appID: Phone.app) }
        case .token:
            error = await expectError(.server("MISDIRECTED_REQUEST")) { try await sdk.deviceToken(appID: Phone.app) }
        default: return
        }
        #expect(error?.message.contains(FakeService.origin) == true)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        if route != .status { #expect(try await phone.signAndVerify(sdk).status == 200) }
    }

    @Test("a send that is cancelled throws CancellationError, and nothing more leaves")
    func cancelled() async throws {
        struct Waiting: HTTPTransport {
            let base: any HTTPTransport
            let copies = Locked(0)
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                if request.url.hasPrefix(FakeService.origin) { return try await base.send(request) }
                copies.withLock { $0 += 1 }
                do { try await Task.sleep(for: .seconds(3600)) } catch { throw TransportError("cancelled") }
                throw TransportError("late")
            }
        }
        let phone = Phone()
        let transport = Waiting(base: phone.service)
        let sdk = try phone.launch {
            $0.origins = Self.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        let send = Task { try await sdk.send(request(), appID: Phone.app) }
        try await eventually { transport.copies.withLock { $0 } == 1 }
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await sdk.send(request(), appID: Phone.app)
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(transport.copies.withLock { $0 } == 1)
    }

    @Test("a cancelled caller of any operation gets its result or CancellationError, and no other error")
    func cancelledOperations() async throws {
        let (_, sdk, _) = try await registered()
        let operations: [@Sendable () async throws -> Void] = [
            { try await sdk.registerDevice(appID: Phone.app) }, { _ = try await sdk.isRegistered(appID: Phone.app) },
            { _ = try await sdk.state(appID: Phone.app) }, { _ = try await sdk.getDeviceId(appID: Phone.app) },
            { _ = try await sdk.sign(appID: Phone.app, method: "GET", url: Self.api + "/v1") },
            { try await sdk.rotateKey(appID: Phone.app) }, { _ = try await sdk.deviceToken(appID: Phone.app) },
            { try await sdk.maintain(appID: Phone.app) },
            { try await sdk.correctClockSkew(serverTimestamp: 1_767_225_601, appID: Phone.app) },
            { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) },
        ]
        for operation in operations {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await operation()
            }
            if case .failure(let error) = await task.result { #expect(error is CancellationError, "\(error)") }
        }
    }

    @Test("after KEY_EXPIRED send rotates and signs again, once")
    func keyExpired() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.edit(id) { $0.isKeyExpired = true }
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("after KEY_INVALIDATED send registers and signs again, once")
    func keyInvalidated() async throws {
        let (phone, sdk, id) = try await registered()
        phone.keys.lose()
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        #expect(try await sdk.getDeviceId(appID: Phone.app) != id)
    }

    @Test("a confirmed DEVICE_REVOKED is thrown with recovery reset, and send never registers again")
    func revoked() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.send(request(), appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.register) == 1)
        #expect(try phone.record().state == .registered)
    }

    @Test(
        "a backend's own DEVICE_REVOKED or NOT_REGISTERED is its answer, not a verdict",
        arguments: [ErrorCode.deviceRevoked, .notRegistered, .invalidSignature])
    func hostileVerdict(code: ErrorCode) async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.answer(
            path: "/v1/readings?day=1", with: await phone.service.answer(FakeService.Refusal(code)))
        #expect(try await sdk.send(request(), appID: Phone.app).status == code.httpStatus)
        #expect(try phone.record().state == .registered)
    }

    @Test("the service's NOT_REGISTERED is thrown with recovery reset")
    func notRegistered() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.edit(id) { $0.status = .deregistered }
        let error = await expectError(.server("NOT_REGISTERED")) { try await sdk.send(request(), appID: Phone.app) }
        #expect(error?.recovery == .reset)
    }

    @Test(
        "after INVALID_SIGNATURE send finishes an interrupted rotation and signs again")
    func lostRotation() async throws {
        let (phone, sdk, _) = try await registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        _ = try? await sdk.rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(3600))
        #expect(try await sdk.send(request(), appID: Phone.app).status == 200)
        #expect(try phone.record().journal == nil)
    }

    @Test(arguments: [Self.api, FakeService.origin])
    func `a second INVALID_SIGNATURE, after a rotation was finished, is a verdict of the auth service alone`(
        origin: String
    ) async throws {
        let (phone, sdk, _) = try await registered()
        for index in 0..<3 { await phone.network.plan(.requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        let refusal = await phone.service.answer(FakeService.Refusal(.invalidSignature))
        await phone.service.answer(path: "/v1/readings?day=1", with: refusal, times: 2)
        let request = request("\(origin)/v1/readings?day=1")
        if origin == FakeService.origin {
            let error = await expectError(.server("INVALID_SIGNATURE")) {
                try await sdk.send(request, appID: Phone.app)
            }
            #expect(error?.recovery == .reset)
        } else {
            #expect(try await sdk.send(request, appID: Phone.app) == refusal)
            #expect(await phone.service.count(.status) == 1)
        }
        #expect(try phone.record().state == .registered && phone.record().keyRotatedAt != nil)
    }

    @Test(
        "an answer of the application is returned as it is, whatever its status",
        arguments: [400, 401, 403, 404, 409, 500, 302])
    func otherAnswers(status: Int) async throws {
        let (phone, sdk, _) = try await registered()
        let own = TransportResponse(status: status, body: Array(#"{"error":"mine"}"#.utf8))
        await phone.service.answer(path: "/v1/readings?day=1", with: own)
        #expect(try await sdk.send(request(), appID: Phone.app) == own)
    }

    @Test("scheme 2 headers verify against the base of the sent request")
    func schemeTwo() async throws {
        let (phone, sdk, _) = try await registered(.two)
        let signed = try await sdk.sign(
            appID: Phone.app, method: "POST", url: "https://API.test:443/v1/x%20y?a=1&b=2",
            bodyBytes: Array("{}".utf8))
        let headers = try SchemeTwoHeaders(HeaderFields(signed.fields.map { ($0.name, $0.value) }))
        let base = try headers.base(
            method: "POST", origin: RequestOrigin(Self.api), target: RequestTarget("/v1/x%20y?a=1&b=2"))
        let key = try #require(await phone.service.devices.first?.key)
        #expect(headers.signature.isValid(for: base.bytes, by: key))
        #expect(headers.contentDigest == ContentDigest(of: Array("{}".utf8)))
        #expect(headers.parameters.keyID == key.thumbprint)
    }

    @Test("a URLRequest is signed in place")
    func urlRequest() async throws {
        let (phone, sdk, _) = try await registered()
        var request = URLRequest(url: try #require(URL(string: "\(Self.api)/v1/readings")))
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        try await sdk.sign(&request, appID: Phone.app)
        let fields = HeaderFields((request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) })
        let answer = try await phone.service.send(
            TransportRequest(method: "POST", url: "\(Self.api)/v1/readings", headers: fields, body: Array("{}".utf8)))
        #expect(answer.status == 200)
        var elsewhere = URLRequest(url: try #require(URL(string: "https://evil.test/")))
        await expectError(.signingFailed) {
            try await sdk.sign(&elsewhere, appID: Phone.app)
            return 0
        }
    }
}

/// Device tokens and automatic rotation.
@Suite struct MaintenanceTests {
    @Test("a token is fetched once and renewed past half of its life")
    func renewed() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let first = try await sdk.deviceToken(appID: Phone.app)
        #expect(first.remaining == .seconds(600))
        phone.clock.advance(.seconds(299))
        #expect(try await sdk.deviceToken(appID: Phone.app).token == first.token)
        phone.clock.advance(.seconds(2))
        #expect(try await sdk.deviceToken(appID: Phone.app).token != first.token)
    }

    @Test("concurrent callers share one fetch; audiences have tokens of their own; a rotation makes a new one")
    func shared() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 { group.addTask { try await sdk.deviceToken(appID: Phone.app).token } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens.count == 1)
        #expect(await phone.service.tokens == 1)
        #expect(try await sdk.deviceToken(appID: Phone.app, audience: "b").token != tokens.first)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await sdk.deviceToken(appID: Phone.app).token != tokens.first)
    }

    @Test("a valid token outlives a service that is down and a wrong wall clock")
    func offline() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let first = try await sdk.deviceToken(appID: Phone.app)
        await phone.network.setOffline(true)
        phone.clock.setError(.seconds(80_000))
        phone.clock.advance(.seconds(500))
        #expect(try await sdk.deviceToken(appID: Phone.app).token == first.token)
        phone.clock.advance(.seconds(100))
        await expectError(.networkError) { try await sdk.deviceToken(appID: Phone.app) }
    }

    @Test("a configuration rotates automatically unless the host says otherwise")
    func automatic() throws {
        #expect(try SynheartAuth.Configuration(baseUrl: "https://auth.example.com").rotatesAutomatically)
    }

    @Test("a token request rotates once after KEY_EXPIRED, and no description shows the token")
    func expired() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.isKeyExpired = true }
        // The fake service clears `isKeyExpired` when the key is rotated.
        let token = try await sdk.deviceToken(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 1)
        var output = "\(token)"
        dump(token, to: &output)
        #expect(!output.contains(token.token))
    }

    @Test("a key is due after 81 to 90 days, at the same time at every launch")
    func schedule() throws {
        var dues: Set<Int64> = []
        for seed in 0..<200 {
            var record = IdentityRecord(appID: try AppID(Phone.app))
            record.identity = .active
            record.deviceID = DeviceID(from: SeededRandom(UInt64(seed)))
            record.registeredAt = UnixTime(0)
            let days = (0...91).first { RotationSchedule.isDue(record, at: UnixTime($0 * 86_400)) }
            dues.insert(try #require(days))
        }
        #expect(dues.allSatisfy { (81...90).contains($0) } && dues.count > 5)
    }

    @Test("the first four bytes of the device id take up to 9 days off the 90")
    func draw() throws {
        var record = IdentityRecord(appID: try AppID(Phone.app))
        record.identity = .active
        record.registeredAt = UnixTime(0)
        for (id, due) in [
            ("00000000", 7_776_000), ("ffffffff", 7_493_505), ("000bdd80", 7_776_000), ("00000001", 7_775_999),
        ] {
            record.deviceID = try DeviceID("\(id)-0000-4000-8000-000000000000")
            #expect(!RotationSchedule.isDue(record, at: UnixTime(Int64(due) - 1)), "\(id)")
            #expect(RotationSchedule.isDue(record, at: UnixTime(Int64(due))), "\(id)")
        }
    }

    @Test("maintain rotates a due key, finishes a leftover, and leaves a young key alone")
    func maintains() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        try await sdk.maintain(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 0)
        phone.clock.advance(.seconds(91 * 86_400))
        try await sdk.maintain(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 1)
        for index in 0..<3 { await phone.network.plan(.requestDropped, at: index) }
        _ = try? await sdk.rotateKey(appID: Phone.app)
        try await phone.launch().maintain(appID: Phone.app)
        #expect(try phone.record().journal == nil)
    }

    @Test("X-Synheart-Rotate on any signed answer of the auth service makes the key due")
    func demanded() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.mustRotateBy = UnixTime(TestClock.start / 1000 + 3600) }
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(try phone.record().rotationDemand != nil)
        try await sdk.maintain(appID: Phone.app)
        #expect(try phone.record().rotationDemand == nil)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("send obeys X-Synheart-Rotate from the auth service alone")
    func demandedBySend() async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        await phone.service.edit(id) { $0.mustRotateBy = UnixTime(TestClock.start / 1000 + 3600) }
        for (origin, isNoted) in [(SendTests.api, false), (FakeService.origin, true)] {
            let request = TransportRequest(method: "GET", url: "\(origin)/v1/own", headers: HeaderFields(), body: [])
            #expect(try await sdk.send(request, appID: Phone.app).status == 200)
            #expect(try (phone.record().rotationDemand != nil) == isNoted, "\(origin)")
        }
    }

    @Test(
        "an X-Synheart-Rotate that arrives after the rotation is about the replaced key: nothing is due",
        arguments: [Route.token.rawValue, "/v1/own"])
    func demandedLate(path: String) async throws {
        /// Runs a step before it returns the first answer for a path.
        struct Late: HTTPTransport {
            let base: any HTTPTransport
            let path: String
            let step = Locked<(@Sendable () async throws -> Void)?>(nil)

            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                let answer = try await base.send(request)
                if request.url.hasSuffix(path), let step = step.withLock({ $0.take() }) {
                    do { try await step() } catch { throw TransportError("\(error)") }
                }
                return answer
            }
        }
        let phone = Phone()
        let late = Late(base: phone.network, path: path)
        let sdk = try phone.launch { $0.transport = late }
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        await phone.service.edit(id) { $0.mustRotateBy = UnixTime(TestClock.start / 1000 + 3600) }
        late.step.withLock { $0 = { try await sdk.rotateKey(appID: Phone.app) } }
        if path == Route.token.rawValue {
            _ = try await sdk.deviceToken(appID: Phone.app)
        } else {
            let url = FakeService.origin + path
            let request = TransportRequest(method: "GET", url: url, headers: HeaderFields(), body: [])
            #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        }
        #expect(await phone.service.count(.rotateKey) == 1)
        #expect(try phone.record().rotationDemand == nil)
    }

    @Test("a background rotation that failed starts again at the next launch")
    func backgroundOnce() async throws {
        let (phone, _, _) = try await Phone.registered()
        phone.clock.advance(.seconds(91 * 86_400))
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        await phone.service.refuse(.rotateKey, .serviceUnavailable, times: 3)
        try await sdk.registerDevice(appID: Phone.app)
        try await eventually { phone.logger.entries.count { $0.event == .rotationFailed } == 3 }
        // The background rotation has ended when the state is registered again. Only the next launch tries again.
        try await eventually { try await sdk.state(appID: Phone.app) == .registered }
        for _ in 0..<3 { try await sdk.registerDevice(appID: Phone.app) }
        #expect(await phone.service.count(.rotateKey) == 3)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        let next = try phone.launch { $0.rotatesAutomatically = true }
        try await next.registerDevice(appID: Phone.app)
        try await eventually { await phone.service.count(.rotateKey) == 4 }
    }

    @Test("a new demand, and a new identity, are rotated for although an earlier background rotation failed")
    func backgroundAgain() async throws {
        let (phone, _, id) = try await Phone.registered()
        phone.clock.advance(.seconds(91 * 86_400))
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        await phone.service.refuse(.rotateKey, .serviceUnavailable, times: 3)
        try await sdk.registerDevice(appID: Phone.app)
        try await eventually { phone.logger.entries.count { $0.event == .rotationFailed } == 3 }
        try await eventually { try await sdk.state(appID: Phone.app) == .registered }
        await phone.service.edit(id) {
            $0.mustRotateBy = UnixTime(phone.clock.trueMilliseconds / 1000 + 86_400)
            $0.mustRotateReason = .compromise
        }
        // The answer carries the demand to rotate.
        _ = try await sdk.deviceToken(appID: Phone.app)
        try await sdk.registerDevice(appID: Phone.app)
        try await eventually { await phone.service.count(.rotateKey) == 4 }
    }

    @Test("registerDevice and send rotate in the background")
    func background() async throws {
        let (phone, _, _) = try await Phone.registered()
        phone.clock.advance(.seconds(91 * 86_400))
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .alreadyRegistered)
        try await eventually { await phone.service.count(.rotateKey) == 1 }
    }
}
