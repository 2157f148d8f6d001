import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// Requests that are signed with a key that a rotation has replaced on the service: the rotation's answer is lost, or the request
/// arrives after the rotation. The identity is healthy, so no call may ask for a reset, unless the service refuses the current key
/// too.
@Suite struct ReplacedKeyTests {
    private typealias HeldTransport = CallDeadlineTests.HeldTransport

    private func registered(
        _ change: (inout SynheartAuth.Configuration) throws -> Void = { _ in }
    ) async throws -> (Phone, SynheartAuth) {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            try change(&$0)
        }
        try await sdk.registerDevice(appID: Phone.app)
        return (phone, sdk)
    }

    /// A device whose rotation was committed by the service, but the rotation's answer was lost.
    private func unanswered() async throws -> (Phone, SynheartAuth) {
        let (phone, sdk) = try await registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        return (phone, sdk)
    }

    private func request(_ url: String, method: String = "POST") -> TransportRequest {
        TransportRequest(method: method, url: url, headers: HeaderFields(), body: [])
    }

    @Test func `a token is fetched after the answer to a rotation was lost`() async throws {
        let (phone, sdk) = try await unanswered()
        #expect(try await sdk.deviceToken(appID: Phone.app).token == "token-1")
        #expect(await phone.service.count(.token) == 2)
        #expect(try phone.record().journal == nil)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
    }

    @Test func `a token is fetched within the overlap, while the rotation pauses before its next attempt`()
        async throws
    {
        let sleeper = HeldSleeper()
        let (phone, sdk) = try await registered { $0.sleeper = sleeper }
        await phone.network.plan(.answerDropped, at: 0)
        let rotation = Task { try await sdk.rotateKey(appID: Phone.app) }
        try await eventually { sleeper.waiting == 1 }
        let token = Task { try await sdk.deviceToken(appID: Phone.app).token }
        try await eventually { await phone.service.count(.token) == 1 }
        sleeper.letGo()
        #expect(try await token.value == "token-1")
        _ = try await rotation.value
        #expect(await phone.service.count(.rotateKey) == 2)
        #expect(await phone.service.count(.token) == 2)
    }

    @Test func `a token request that arrives after the rotation is signed again`() async throws {
        let transport = Locked<HeldTransport?>(nil)
        let (phone, sdk) = try await registered {
            let held = HeldTransport($0.transport, holding: Route.token.rawValue)
            transport.withLock { $0 = held }
            $0.transport = held
        }
        let held = try #require(transport.withLock { $0 })
        let token = Task { try await sdk.deviceToken(appID: Phone.app).token }
        try await eventually { await held.waiting == 1 }
        try await sdk.rotateKey(appID: Phone.app)
        await held.letGo()
        #expect(try await token.value == "token-1")
        #expect(await phone.service.count(.token) == 2)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test(arguments: [FakeService.origin, SendTests.api])
    func `a send that arrives after a rotation for a compromise is signed again`(origin: String) async throws {
        let transport = Locked<HeldTransport?>(nil)
        let (phone, sdk) = try await registered {
            let held = HeldTransport($0.transport, holding: "/v1/readings")
            transport.withLock { $0 = held }
            $0.transport = held
        }
        let held = try #require(transport.withLock { $0 })
        let request = request("\(origin)/v1/readings")
        let send = Task { try await sdk.send(request, appID: Phone.app).status }
        try await eventually { await held.waiting == 1 }
        try await sdk.rotateKey(appID: Phone.app, reason: .compromise)
        await held.letGo()
        #expect(try await send.value == 200)
        #expect(await phone.service.accepted == ["\(origin)/v1/readings"])
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test func `a backend's verdict is confirmed although the answer to a rotation was lost`() async throws {
        let (phone, sdk) = try await unanswered()
        phone.clock.advance(.seconds(3600))
        let refusal = await phone.service.answer(FakeService.Refusal(.notRegistered))
        await phone.service.answer(path: "/v1/readings", with: refusal)
        #expect(try await sdk.send(request("\(SendTests.api)/v1/readings"), appID: Phone.app) == refusal)
        #expect(try phone.record().journal == nil)
    }

    @Test func `a token that cannot be had while the rotation is unsettled is the held one, or a network error`()
        async throws
    {
        let (phone, sdk) = try await registered()
        let held = try await sdk.deviceToken(appID: Phone.app)
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.advance(.seconds(200))
        // Message 0 is the token request, messages 1 to 3 are attempts at the rotation.
        for index in 1...3 { await phone.network.plan(.requestDropped, at: index) }
        #expect(try await sdk.deviceToken(appID: Phone.app).token == held.token)
        for index in 1...3 { await phone.network.plan(.requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.deviceToken(appID: Phone.app, audience: "other") }
    }

    @Test(arguments: [true, false])
    func `a refused signature is a verdict if no rotation explains it, or if a second one is refused`(
        rotates: Bool
    ) async throws {
        let (phone, sdk) = rotates ? try await unanswered() : try await registered()
        await phone.service.refuse(.token, .invalidSignature, times: 3)
        let error = await expectError(.server("INVALID_SIGNATURE")) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.token) == (rotates ? 2 : 1))
    }
}
