import AuthContract
import Testing

@testable import SynheartAuth

/// Requests of an identity that are answered after a reset, when the app has another identity. Their answers must not
/// reach the callers of the new identity, nor ask the app to reset the new identity.
@Suite struct EarlierIdentityTests {
    private typealias HeldTransport = CallDeadlineTests.HeldTransport

    /// A registered device whose requests to a path wait in the network.
    private func registered(holding path: String) async throws -> (Phone, SynheartAuth, HeldTransport) {
        let phone = Phone()
        let held = HeldTransport(phone.network, holding: path)
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = held
        }
        try await sdk.registerDevice(appID: Phone.app)
        return (phone, sdk, held)
    }

    /// Resets the identity, as when the user signs out, and registers the device again.
    private func renew(_ sdk: SynheartAuth) async throws {
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        try await sdk.registerDevice(appID: Phone.app)
    }

    @Test func `a token request sent before a reset answers no later call`() async throws {
        let (phone, sdk, held) = try await registered(holding: Route.token.rawValue)
        let before = Task { try await sdk.deviceToken(appID: Phone.app).token }
        try await eventually { await held.waiting == 1 }
        try await renew(sdk)
        let after = Task { try await sdk.deviceToken(appID: Phone.app).token }
        try await eventually { await held.waiting == 2 }
        await held.letGo()
        #expect(try await after.value == "token-1")
        let error = await expectError(.networkError) { try await before.value }
        #expect(error?.recovery == .retry)
        #expect(try await sdk.deviceToken(appID: Phone.app).token == "token-1")
        #expect(try phone.record().identity == .active)
    }

    @Test func `the callers of one identity share a token request`() async throws {
        let (phone, sdk, held) = try await registered(holding: Route.token.rawValue)
        let tokens = (0..<3).map { _ in Task { try await sdk.deviceToken(appID: Phone.app).token } }
        try await eventually { await held.waiting == 1 }
        await held.letGo()
        for token in tokens { #expect(try await token.value == "token-1") }
        #expect(await phone.service.count(.token) == 1)
    }

    @Test(arguments: [FakeService.origin, SendTests.api])
    func `a request of before a reset is refused without a word about the new identity`(origin: String) async throws {
        let (phone, sdk, held) = try await registered(holding: "/v1/readings")
        let request = TransportRequest(
            method: "GET", url: "\(origin)/v1/readings", headers: HeaderFields(), body: [])
        let before = Task { try await sdk.send(request, appID: Phone.app).status }
        try await eventually { await held.waiting == 1 }
        try await renew(sdk)
        await held.letGo()
        #expect(try await before.value == 401)
        #expect(try phone.record().identity == .active)
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
    }
}
