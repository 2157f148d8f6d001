import AuthContract
import Testing

@testable import SynheartAuth

/// The form of the SDK's own requests, and the answers that it accepts.
@Suite struct ServiceClientTests {
    private struct Fixed: HTTPTransport {
        let answer: TransportResponse
        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse { answer }
    }

    private func outcome(of answer: TransportResponse) async throws -> ServiceClient.Outcome {
        let clock = TestClock()
        let client = ServiceClient(
            origin: try AuthOrigin(FakeService.origin), transport: Fixed(answer: answer), clock: clock,
            sleeper: TestSleeper(clock), isDevelopment: false)
        return await client.exchange(.status)
    }

    private func refusal(_ code: String, _ status: Int, message: String = "m") -> SynheartAuthError {
        let body = ErrorBody(code: code, message: message, requestID: "r", serverTimestamp: UnixTime(1_709_312_345))
        return ServiceVerdict.error(
            of: TransportResponse(status: status, headers: HeaderFields([("Retry-After", "7")]), body: body.bytes))
    }

    @Test func `a request has 30 seconds, accepts JSON, and names the SDK and the type of its body`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.set { $0.decision = .pending }
        try await sdk.registerDevice(appID: "com.example.other")
        try await sdk.registerDevice(appID: "com.example.other")
        let requests = await phone.service.requests
        #expect(requests.contains { $0.body.isEmpty } && requests.contains { !$0.body.isEmpty })
        for request in requests {
            #expect(request.deadline == .seconds(30), "\(request.url)")
            #expect(request.headers.values("Accept") == ["application/json"])
            #expect(request.headers.values("User-Agent") == ["synheart-auth/\(SDKVersion.text) (swift)"])
            #expect(request.headers.values("Content-Type") == (request.body.isEmpty ? [] : ["application/json"]))
        }
    }

    @Test(arguments: [(199, false), (200, true), (204, true), (299, true), (300, false), (302, false), (400, false)])
    func `only a 2xx is a success`(status: Int, isSuccess: Bool) async throws {
        let result = try await outcome(of: TransportResponse(status: status, body: [1])).result
        #expect((try? result.get())?.body == (isSuccess ? [1] : nil))
        if case .failure(let error) = result { #expect(error.code == .networkError) }
    }

    @Test(arguments: [400, 403, 451, 499])
    func `a 4xx in the contract's form is the service's verdict`(status: Int) {
        let error = refusal("UNKNOWN_APP", status)
        #expect(error.code == .server("UNKNOWN_APP") && error.message == "m")
        #expect(error.retryAfter == .seconds(7) && error.serverTime == UnixTime(1_709_312_345))
    }

    @Test(arguments: [500, 501, 503, 599])
    func `a 5xx in the contract's form is a network error that names the code`(status: Int) {
        let error = refusal("UNKNOWN_APP", status)
        #expect(error.code == .networkError && error.message == "the service answered UNKNOWN_APP")
        #expect(error.retryAfter == .seconds(7) && error.serverTime == UnixTime(1_709_312_345))
    }

    @Test(arguments: [199, 302, 399, 600, 999])
    func `an answer of any other status is not the service's, whatever its body`(status: Int) {
        let error = refusal("UNKNOWN_APP", status)
        #expect(error.code == .networkError && error.message == "the answer is not the service's (HTTP \(status))")
        #expect(error.retryAfter == .seconds(7) && error.serverTime == nil)
    }

    @Test func `a message has 500 characters at most`() {
        for count in [499, 500, 501, 5000] {
            let message = String(repeating: "é", count: count)
            #expect(refusal("UNKNOWN_APP", 404, message: message).message == String(message.prefix(500)))
        }
    }

    @Test(
        arguments: [
            ("required; by=1709312345", 1_709_312_345), ("required;by=1709312345", 1_709_312_345),
            ("required; x=1;   by=1709312345", 1_709_312_345), ("required", nil), ("required; by=", nil),
            ("required; by=170931234", nil), ("required; by=17093123456", nil), ("required; until=1709312345", nil),
            ("optional; by=1709312345", nil), ("by=1709312345", nil), ("", nil),
        ] as [(String, Int64?)])
    func `a demand to rotate says required, and names a time`(text: String, seconds: Int64?) async throws {
        let headers = HeaderFields([("x-synheart-rotate", text)])
        #expect(ServiceVerdict.rotationDemand(headers)?.by.seconds == seconds)
        let outcome = try await outcome(of: TransportResponse(status: 403, headers: headers))
        #expect(outcome.rotationDemand?.by.seconds == seconds)
    }

    @Test func `two demands to rotate are none`() {
        let line = ("X-Synheart-Rotate", "required; by=1709312345")
        #expect(ServiceVerdict.rotationDemand(HeaderFields([line, line])) == nil)
    }

    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("299", 299), ("300", 300), ("301", 300), ("9223372036854775807", 300),
            ("9223372036854775808", 300),
            ("99999999999999999999999", 300), ("+5", nil), ("-1", nil), ("1.5", nil), ("", nil),
            ("Wed, 21 Oct 2015 07:28:00 GMT", nil),
        ] as [(String, Int64?)])
    func `Retry-After counts in whole seconds, up to five minutes`(text: String, seconds: Int64?) {
        #expect(ServiceVerdict.retryAfter(HeaderFields([("Retry-After", text)])) == seconds.map { .seconds($0) })
    }

    @Test func `a clock offset comes from the header, else from the body of a refusal`() async throws {
        let body = ErrorBody(code: "CLOCK_SKEW", message: "", requestID: "", serverTimestamp: UnixTime(1_767_226_700))
        func offset(_ status: Int, _ header: String?) async throws -> Int64? {
            let headers = HeaderFields(header.map { [("X-Synheart-Server-Time", $0)] } ?? [])
            let answer = TransportResponse(status: status, headers: headers, body: body.bytes)
            return try await outcome(of: answer).offset?.milliseconds
        }
        // The test clock is at 1,767,226,600. The time in the header is 50 seconds later, and the one in the body 100.
        #expect(try await offset(200, "1767226650") == 50_000)
        #expect(try await offset(401, "1767226650") == 50_000)
        #expect(try await offset(400, nil) == 100_000)
        #expect(try await offset(399, nil) == nil)
        // If the header is not a time, the time in the body is not used instead.
        #expect(try await offset(401, "soon") == nil)
    }

    @Test(
        arguments: [
            (31, 90, false), (32, 90, true), (33, 90, true), (32, 0, false), (32, 1, true), (32, -1, false),
        ] as [(Int, Int64, Bool)])
    func `a challenge has 32 bytes and a life`(count: Int, life: Int64, isChallenge: Bool) async throws {
        let phone = Phone()
        let response = ChallengeResponse(
            challenge: SystemRandom().bytes(count), expiresAt: UnixTime(0), ttlSeconds: life)
        await phone.service.answer(
            path: Route.challenge.rawValue, with: TransportResponse(status: 200, body: response.bytes), times: 5)
        phone.attestation.fail(.unsupported)
        // After a valid challenge, the SDK asks the provider, which cannot attest here.
        await expectError(isChallenge ? .attestationUnavailable : .networkError) {
            try await phone.launch().registerDevice(appID: Phone.app)
        }
        #expect(phone.attestation.subjects.isEmpty != isChallenge)
    }
}
