import Foundation
import SynheartAuthTestSupport
import Testing

/// The stand-in behaves as the SDK does, and as a test writes down.
@Suite struct FakeSynheartAuthTests {
    private let app = "com.example.app"
    private let request = TransportRequest(
        method: "GET", url: "https://api.example.com/v1/readings", headers: HeaderFields(), body: [])

    private func code(_ body: () async throws(SynheartAuthError) -> Void) async -> SynheartAuthError.Code? {
        do throws(SynheartAuthError) { try await body() } catch { return error.code }
        return nil
    }

    @Test func `a device registers before it signs, keeps its id, and starts over after a reset`() async throws {
        let auth = FakeSynheartAuth()
        #expect(
            await code { () async throws(SynheartAuthError) in _ = try await auth.send(request, appID: app) }
                == .notRegistered)
        let first = try await auth.registerDevice(appID: app)
        let second = try await auth.registerDevice(appID: app)
        #expect(first.status == .registered && second.status == .alreadyRegistered && first.deviceId == second.deviceId)
        #expect(UUID(uuidString: first.deviceId)?.uuidString.lowercased() == first.deviceId)
        #expect(try await auth.isRegistered(appID: app))
        #expect(try await auth.signRequest(appID: app, method: "GET", path: "/").fields.count == 6)
        #expect(try await auth.deviceToken(appID: app).remaining > .zero)
        let rotations = [try await auth.rotateKey(appID: app), try await auth.rotateKey(appID: app)]
        #expect(rotations[0].effectiveAt < rotations[1].effectiveAt && rotations[0].deviceId == first.deviceId)
        try await auth.resetDeviceIdentity(appID: app, reason: .userRequested)
        #expect(try await auth.getDeviceId(appID: app) == nil)
        #expect(try await auth.registerDevice(appID: app).deviceId != first.deviceId)
    }

    @Test func `scripted failures and answers come once each, in their order`() async throws {
        let auth: FakeSynheartAuth = FakeSynheartAuth()
        auth.register(as: .pending)
        #expect(try await auth.registerDevice(appID: app).status == .pending)
        #expect(try await auth.registerDevice(appID: app).status == .registered)
        auth.fail(.send, with: .fromCode("NETWORK_ERROR"), .fromCode("DEVICE_REVOKED"))
        auth.answer("/v1/readings", with: TransportAnswer(status: 503))
        var codes: [SynheartAuthError.Code?] = []
        for _ in 0..<2 {
            codes.append(
                await code { () async throws(SynheartAuthError) in _ = try await auth.send(request, appID: app) })
        }
        #expect(codes == [.networkError, .deviceRevoked])
        #expect(try await auth.send(request, appID: app).status == 503)
        #expect(try await auth.send(request, appID: app).status == 200)
        #expect(auth.calls.filter { $0.operation == .send }.map(\.request) == [request, request, request, request])
    }

    @Test func `the app hears of each change of state, also of one that a test makes`() async throws {
        let auth = FakeSynheartAuth()
        var changes = auth.stateChanges.makeAsyncIterator()
        try await auth.registerDevice(appID: app)
        auth.set(.keyInvalid, appID: app)
        auth.set(.keyInvalid, appID: app)
        #expect(await changes.next()?.transition == StateTransition(from: .unregistered, to: .registered))
        #expect(await changes.next()?.transition == StateTransition(from: .registered, to: .keyInvalid))
        #expect(
            await code { () async throws(SynheartAuthError) in _ = try await auth.deviceToken(appID: app) }
                == .keyInvalidated)
    }

    /// An app's own code takes the protocol.
    private func upload(_ auth: any DeviceAuthenticating) async throws -> Bool {
        do throws(SynheartAuthError) {
            return try await auth.send(request, appID: app).status == 200
        } catch {
            guard error.recovery == .register else { throw error }
            try await auth.registerDevice(appID: app)
            return try await auth.send(request, appID: app).status == 200
        }
    }

    @Test func `code that takes the protocol recovers as its author meant`() async throws {
        let auth = FakeSynheartAuth()
        #expect(try await upload(auth))
        #expect(auth.calls.map(\.operation) == [.send, .registerDevice, .send])
    }
}
