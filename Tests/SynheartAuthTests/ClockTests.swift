import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// Clock skew: the answers from which the SDK computes the clock offset, and the largest offset.
@Suite struct ClockTests {
    @Test("correctClockSkew persists the rounded offset and applies it")
    func correct() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let local = Double(phone.clock.wallMilliseconds) / 1000
        try await sdk.correctClockSkew(serverTimestamp: local + 123.4564)
        #expect(try phone.record().clockOffset.milliseconds == 123_456)
        let headers = try await phone.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
        let timestamp = try #require(headers.dictionary["X-Synheart-Timestamp"].flatMap(Int64.init))
        #expect(timestamp == (phone.clock.wallMilliseconds + 123_456) / 1000)
    }

    @Test("a device with a wrong clock learns the offset and signs", arguments: [3600, -3600, 86_000, -86_000])
    func offOnTheWay(seconds: Int) async throws {
        let phone = Phone()
        phone.clock.setError(.seconds(seconds))
        let sdk = try phone.launch()
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await phone.signAndVerify(phone.launch()).status == 200)
    }

    @Test("the SDK's own calls learn a clock that jumps later")
    func jumps() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for error in [7200, -7200, 40_000, 0] {
            phone.clock.setError(.seconds(error))
            try await sdk.rotateKey(appID: Phone.app)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }
    }

    @Test func `a clock that cannot be stored is an error of the storage, and corrected once it can be`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(3600))
        phone.storage.refuseWrites(true)
        let error = await expectError(.storageError) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(error?.recovery == .retry)
        phone.storage.refuseWrites(false)
        _ = try await sdk.deviceToken(appID: Phone.app)
    }

    @Test("a clock ten years off is not learned, and the error asks to correct it")
    func tenYears() async throws {
        let phone = Phone()
        phone.clock.setError(.seconds(10 * 365 * 86_400))
        let sdk = try phone.launch()
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(try phone.record().clockOffset == ClockOffset.none)
        #expect(try await phone.signAndVerify(sdk).status == 401)
        let error = await expectError(.clockSkew) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .correctClock && error?.isRetryable == false)
        await expectError(.clockSkew) {
            try await sdk.correctClockSkew(serverTimestamp: Double(phone.clock.trueMilliseconds) / 1000)
        }
        phone.clock.setError(.zero)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(
        "a registration has the service's time, whatever the device's clock shows",
        arguments: [RegistrationStatus.registered, .pending])
    func registeredAt(status: RegistrationStatus) async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = status }
        phone.clock.setError(.seconds(10 * 365 * 86_400))
        try await phone.launch().registerDevice(appID: Phone.app)
        #expect(try phone.record().registeredAt == (await phone.service.devices.first?.registeredAt))
    }

    @Test(
        "a hostile service can move the clock by 24 hours at most", arguments: [86_300, 86_500, -86_500, 315_360_000])
    func hostile(error: Int64) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.set { $0.serverTimeError = error }
        _ = try? await sdk.rotateKey(appID: Phone.app)
        #expect(abs(try phone.record().clockOffset.milliseconds) <= ClockOffset.limit)
        await phone.service.set { $0.serverTimeError = 0 }
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(
        "a malformed server timestamp is refused", arguments: [Double.nan, .infinity, -.infinity, 0, 1e300, -1e300])
    func nonsense(timestamp: Double) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await expectError(.clockSkew) { try await sdk.correctClockSkew(serverTimestamp: timestamp) }
        #expect(try phone.record().clockOffset == ClockOffset.none)
    }

    @Test("an exchange during which the process was suspended teaches no offset", arguments: [60, 61, 720])
    func suspended(seconds: Int) async throws {
        struct Suspended: HTTPTransport {
            let base: any HTTPTransport
            let clock: TestClock
            let time: Duration
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                let answer = try await base.send(request)
                if request.url.hasSuffix(Route.token.rawValue) { clock.advance(time) }
                return answer
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let sdk = try phone.launch {
            $0.transport = Suspended(base: phone.network, clock: phone.clock, time: .seconds(seconds))
        }
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(try phone.record().clockOffset.milliseconds == (seconds > 60 ? 0 : -30_000))
    }

    @Test(
        "a request that was under way while the process was suspended is signed again",
        arguments: [SendTests.api + "/v1/readings", FakeService.origin + "/v1/own", nil], [0, 7200])
    func suspendedOnTheWay(url: String?, error: Int) async throws {
        struct Suspended: HTTPTransport {
            let base: any HTTPTransport
            let clock: TestClock
            let path: String
            let isOver = Locked(false)
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                let isFirst =
                    request.url.hasSuffix(path)
                    && isOver.withLock { isOver in
                        defer { isOver = true }
                        return !isOver
                    }
                if isFirst { clock.advance(.seconds(400)) }
                return try await base.send(request)
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = Suspended(base: phone.network, clock: phone.clock, path: url ?? Route.token.rawValue)
        }
        // The device's clock may be wrong too.
        phone.clock.setError(.seconds(error))
        if let url {
            let request = TransportRequest(
                method: "GET", url: url, headers: HeaderFields(), body: [], deadline: .seconds(3600))
            #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        } else if error == 0 {
            _ = try await sdk.deviceToken(appID: Phone.app)
        } else {
            // The SDK learns the offset from the answer to the second copy, and sends no third copy in this call.
            #expect(await expectError(.clockSkew) { try await sdk.deviceToken(appID: Phone.app) }?.recovery == .retry)
            _ = try await sdk.deviceToken(appID: Phone.app)
        }
        #expect(try abs(phone.record().clockOffset.milliseconds + Int64(error * 1000)) < 2000)
    }

    @Test("the offset includes half of the round trip")
    func roundTrip() {
        let offset = ClockOffset(serverTime: UnixTime(1000), receivedAt: 990_000, roundTrip: .seconds(4))
        #expect(offset?.milliseconds == 12_000)
    }

    @Test("the bound is exact, and arithmetic cannot overflow")
    func bounds() {
        #expect(ClockOffset(milliseconds: 86_400_000) != nil && ClockOffset(milliseconds: -86_400_000) != nil)
        #expect(ClockOffset(milliseconds: 86_400_001) == nil && ClockOffset(milliseconds: .min) == nil)
        #expect(ClockOffset(serverTime: UnixTime(.max), receivedAt: .min, roundTrip: .seconds(Int64.max)) == nil)
        #expect(ClockOffset.none.serverTime(atLocal: .max).seconds == .max / 1000)
        #expect(ClockOffset.none.serverTime(atLocal: -1).seconds == -1)
    }

    @Test(
        "a clock before 2001 or after 2286 is CLOCK_SKEW", arguments: [-60, 300])
    func impossible(years: Int) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(years * 365 * 86_400))
        await expectError(.clockSkew) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
    }
}
