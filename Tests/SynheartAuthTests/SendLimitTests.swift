import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The answers from which `send` recovers, those that it only returns, and the requests that it sends.
@Suite struct SendLimitTests {
    private let path = "/v1/readings"

    private func registered() async throws -> (Phone, SynheartAuth, String) {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        return (phone, sdk, id)
    }

    private func request(_ origin: String = SendTests.api, method: String = "GET") -> TransportRequest {
        TransportRequest(method: method, url: origin + path, headers: HeaderFields(), body: [])
    }

    private func answer(_ code: ErrorCode, _ status: Int) -> TransportResponse {
        let body = ErrorBody(
            code: code.rawValue, message: "m", requestID: "r", serverTimestamp: UnixTime(TestClock.start / 1000))
        return TransportResponse(status: status, body: body.bytes)
    }

    @Test(
        arguments: [
            (400, 1), (401, 2), (402, 1), (403, 2), (404, 1), (408, 1), (409, 2), (410, 1), (500, 1), (200, 1),
        ])
    func `a refusal has status 401, 403 or 409, whatever its body says`(status: Int, requests: Int) async throws {
        let (phone, sdk, _) = try await registered()
        let refusal = answer(.nonceReplay, status)
        await phone.service.answer(path: path, with: refusal)
        let sent = await phone.service.requests.count
        let got = try await sdk.send(request(), appID: Phone.app)
        #expect((got == refusal) == (requests == 1))
        #expect(await phone.service.requests.count == sent + requests)
    }

    @Test(
        arguments: [
            ErrorCode.unknownApp, .forbidden, .invalidAssertion, .devicePending, .rateLimited,
        ])
    func `a refusal that signing again cannot heal is returned`(code: ErrorCode) async throws {
        let (phone, sdk, _) = try await registered()
        let refusal = answer(code, 403)
        await phone.service.answer(path: path, with: refusal)
        let sent = await phone.service.requests.count
        #expect(try await sdk.send(request(), appID: Phone.app) == refusal)
        #expect(await phone.service.requests.count == sent + 1)
    }

    @Test(arguments: [SendTests.api, FakeService.origin])
    func `a scheme that is refused is not replaced by the other one: which one signs is the app's decision`(
        origin: String
    ) async throws {
        let (phone, sdk, _) = try await registered()
        let refusal = answer(.unsupportedSigVersion, 400)
        await phone.service.answer(path: path, with: refusal)
        let sent = await phone.service.requests.count
        #expect(try await sdk.send(request(origin), appID: Phone.app) == refusal)
        let requests = await phone.service.requests.dropFirst(sent)
        #expect(requests.map { $0.headers.contains(HeaderName.signatureInput) } == [false])
        #expect(try phone.record().schemeFloor == .one)
    }

    @Test(arguments: [ErrorCode.deviceRevoked, .notRegistered, .invalidSignature])
    func `a verdict of the auth service itself is not asked about`(code: ErrorCode) async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.answer(path: path, with: answer(code, 403))
        let error = await expectError(RetryTable.reported(code)) {
            try await sdk.send(request(FakeService.origin), appID: Phone.app)
        }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.status) == 0)
    }

    @Test func `each refusal is recovered from once, one after the other`() async throws {
        let (phone, sdk, _) = try await registered()
        for (code, status) in [(ErrorCode.nonceReplay, 409), (.keyExpired, 403), (.nonceReplay, 409)] {
            await phone.service.answer(path: path, with: answer(code, status))
        }
        await expectError(.nonceReplay) { try await sdk.send(request(), appID: Phone.app) }
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test(.timeLimit(.minutes(15)))
    func `a send whose key is lost joins a registration in progress`() async throws {
        let (phone, _, id) = try await Phone.registered()
        let keys = GatedKeyStore(base: phone.keys)
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.keyStore = keys
        }
        phone.keys.lose()
        await expectError(.keyInvalidated) {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/").fields.count
        }
        // The registration first calls `delete` for the lost key.
        keys.deleting.shut()
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { keys.deleting.count == 1 }
        let send = Task { try await sdk.send(request(), appID: Phone.app).status }
        for _ in 0..<100 { await Task.yield() }
        keys.deleting.open()
        #expect(try await send.value == 200)
        #expect(try await registration.value.deviceId != id)
        #expect(await phone.service.devices.count == 2)
    }

    @Test func `a send that never was registered does not register`() async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        await expectError(.notRegistered) { try await sdk.send(request(), appID: Phone.app) }
        #expect(await phone.network.messages == 0)
    }

    @Test(arguments: [(SignatureScheme.one, "PATCH"), (.two, "patch")])
    func `scheme 1 sends the method in upper case, scheme 2 as it is`(
        scheme: SignatureScheme, method: String
    )
        async throws
    {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = scheme
        }
        await phone.service.answer(path: path, with: TransportResponse(status: 204))
        _ = try await sdk.send(request(method: "patch"), appID: Phone.app)
        #expect(await phone.service.requests.last?.method == method)
    }

    @Test(
        arguments: [
            ("http://api.test", false), ("http://10.0.0.1:80", false), ("http://127.0.0.1:8080", true),
            ("http://localhost", true), ("https://api.test:8443", true),
        ])
    func `a listed origin is https, or on this machine`(origin: String, isSigned: Bool) async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = Set([origin].compactMap { try? RequestOrigin($0) }) }
        try await sdk.registerDevice(appID: Phone.app)
        if isSigned {
            #expect(try await sdk.send(request(origin), appID: Phone.app).status == 200)
        } else {
            await expectError(.signingFailed) { try await sdk.send(request(origin), appID: Phone.app) }
        }
    }

    @Test(arguments: [
        "https://", "https:///", "https:///v1", "https://?a=b", "https:///?a", "https://#a", "https:", "/",
    ])
    func `a URL without a host is refused`(url: String) {
        #expect(throws: SynheartAuthError(.signingFailed, "")) { try RequestTargetURL(url) }
    }

    @Test(
        arguments: [
            ("https://a", "https://a", "/"), ("https://a?b=/c", "https://a", "/?b=/c"),
            ("https://a/?", "https://a", "/?"),
            ("http://127.0.0.1:8080/a%2Fb?c=d?e", "http://127.0.0.1:8080", "/a%2Fb?c=d?e"),
        ])
    func `a URL is split into origin and target`(url: String, origin: String, target: String) throws {
        let place = try RequestTargetURL(url)
        #expect(try place.origin == RequestOrigin(origin) && place.target == RequestTarget(target))
    }

    @Test func `a URLRequest with a body stream, or with two bodies, is not signed`() async throws {
        let (_, sdk, _) = try await registered()
        var streamed = URLRequest(url: try #require(URL(string: SendTests.api + path)))
        streamed.httpMethod = "POST"
        streamed.httpBodyStream = InputStream(data: Data([1]))
        let request = streamed
        await expectError(.signingFailed) {
            var request = request
            try await sdk.sign(&request, appID: Phone.app)
        }
        await expectError(.signingFailed) {
            var request = request
            try await sdk.sign(&request, appID: Phone.app, bodyFile: #filePath)
        }
    }

    @Test func `a URLRequest without a method is a GET, or a POST of a file`() async throws {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = .two
        }
        for isFile in [true, false] {
            var request = URLRequest(url: try #require(URL(string: SendTests.api + path)))
            if isFile {
                try await sdk.sign(&request, appID: Phone.app, bodyFile: #filePath)
            } else {
                try await sdk.sign(&request, appID: Phone.app)
            }
            #expect(request.value(forHTTPHeaderField: "Signature-Input")?.isEmpty == false)
            #expect((request.value(forHTTPHeaderField: "Content-Digest") == ContentDigest(of: []).field) == !isFile)
        }
    }
}

/// The refusals after which the SDK signs one of its own requests again.
@Suite struct SignedCallTests {
    private func tokens(_ phone: Phone) async -> [TransportRequest] {
        await phone.service.requests.filter { $0.url.hasSuffix(Route.token.rawValue) }
    }

    @Test func `after UNSUPPORTED_SIG_VERSION a call is signed again under scheme 2`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, .unsupportedSigVersion)
        await phone.service.answer(
            path: Route.token.rawValue,
            with: TransportResponse(status: 200, body: TokenResponse(token: "t", expiresIn: 60).bytes))
        #expect(try await sdk.deviceToken(appID: Phone.app).token == "t")
        let sent = await tokens(phone)
        #expect(sent.count == 2 && !sent[0].headers.values("X-Synheart-Signature").isEmpty)
        let headers = try SchemeTwoHeaders(try #require(sent.last).headers)
        let base = try headers.base(
            method: "POST", origin: RequestOrigin(FakeService.origin), target: RequestTarget(Route.token.rawValue))
        let key = try #require(await phone.service.devices.first?.key)
        #expect(headers.signature.isValid(for: base.bytes, by: key))
        #expect(try headers.contentDigest == ContentDigest(of: #require(sent.last).body))
    }

    @Test(arguments: [ErrorCode.unsupportedSigVersion, .nonceReplay, .clockSkew])
    func `a call is signed again once for each refusal`(code: ErrorCode) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, code, times: 3)
        await expectError(RetryTable.reported(code)) { try await sdk.deviceToken(appID: Phone.app) }
        // If the refusal does not correct the clock, the SDK does not sign again.
        #expect(await tokens(phone).count == (code == .clockSkew ? 1 : 2))
    }

    @Test(arguments: [ErrorCode.invalidRequest, .forbidden, .notRegistered, .rateLimited, .invalidAssertion])
    func `any other refusal is reported`(code: ErrorCode) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, code)
        await expectError(RetryTable.reported(code)) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(await tokens(phone).count == 1)
    }

    @Test func `a key that the key store calls lost is not a registration`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(.invalidated))
        #expect(try await !sdk.isRegistered(appID: Phone.app))
        phone.keys.fail(KeyStoreError(.notFound))
        #expect(try await sdk.isRegistered(appID: Phone.app), "not found once")
        #expect(try await sdk.isRegistered(appID: Phone.app))
        phone.keys.lose()
        _ = try phone.keys.create(.primary(AppID(Phone.app)), challenge: nil)
        // A different key has the alias of the registered one. The SDK treats the registered key as lost only if it finds the
        // different key again two seconds later.
        #expect(try await sdk.isRegistered(appID: Phone.app))
        phone.clock.advance(.seconds(2))
        #expect(try await !sdk.isRegistered(appID: Phone.app))
    }

    @Test func `a wait is cancelled with its task`() async {
        let outcomes = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var cancelled = 0
            do { try await TaskSleeper().sleep(for: .seconds(3600), .retry) } catch { cancelled += 1 }
            do throws(SynheartAuthError) { try await TaskSleeper().pause(.seconds(3600), .turn) } catch {
                if error.code == .cancelled { cancelled += 1 }
            }
            return cancelled
        }.value
        #expect(outcomes == 2)
    }
}
