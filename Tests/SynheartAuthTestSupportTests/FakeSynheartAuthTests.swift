import Foundation
import SynheartAuthTestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The stand-in behaves as the SDK does, or as a test scripts it.
@Suite struct FakeSynheartAuthTests {
    private let app = "com.example.app"
    private let request = TransportRequest(
        method: "GET", url: "https://api.example.com/v1/readings", headers: HeaderFields(), body: [])

    private func code(_ body: () async throws -> Void) async -> SynheartAuthError.Code? {
        do { try await body() } catch { return (error as? SynheartAuthError)?.code }
        return nil
    }

    @Test func `a device registers before it signs, keeps its id, and starts over after a reset`() async throws {
        let auth = FakeSynheartAuth()
        #expect(
            await code { _ = try await auth.send(request, appID: app) }
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
        auth.answer("/v1/readings", with: TransportResponse(status: 503))
        var codes: [SynheartAuthError.Code?] = []
        for _ in 0..<2 {
            codes.append(
                await code { _ = try await auth.send(request, appID: app) })
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
            await code { _ = try await auth.deviceToken(appID: app) }
                == .keyInvalidated)
    }

    @Test func `an identity set to registered can sign, one set to unregistered has no device id`() async throws {
        let auth = FakeSynheartAuth()
        auth.set(.registered, appID: app)
        let id = try #require(try await auth.getDeviceId(appID: app))
        #expect(try await auth.registerDevice(appID: app).deviceId == id)
        #expect(try await auth.send(request, appID: app).status == 200)
        auth.set(.unregistered, appID: app)
        #expect(try await auth.getDeviceId(appID: app) == nil)
        #expect(try await auth.registerDevice(appID: app).deviceId != id)
    }

    /// Code as an app may have it. It knows the SDK only by the protocol `DeviceAuthenticating`.
    private func upload(_ auth: any DeviceAuthenticating) async throws -> Bool {
        do {
            return try await auth.send(request, appID: app).status == 200
        } catch let error as SynheartAuthError where error.recovery == .register {
            try await auth.registerDevice(appID: app)
            return try await auth.send(request, appID: app).status == 200
        }
    }

    @Test func `what an app sends and signs by URLRequest, by file or by URL goes through the fake too`() async throws {
        let fake = FakeSynheartAuth()
        let auth: any DeviceAuthenticating = fake
        try await auth.registerDevice(appID: app)
        fake.answer(
            "/v1/readings", with: TransportResponse(status: 201, headers: HeaderFields([("A", "b")]), body: [1]))
        var message = URLRequest(url: try #require(URL(string: request.url)))
        message.httpMethod = "POST"
        message.httpBody = Data("{}".utf8)
        let (data, response) = try await auth.data(for: message, appID: app)
        #expect(data == Data([1]) && response.statusCode == 201 && response.value(forHTTPHeaderField: "A") == "b")
        #expect(fake.calls.last?.request?.body == Array("{}".utf8) && fake.calls.last?.request?.method == "POST")
        try await auth.sign(&message, appID: app)
        #expect(message.value(forHTTPHeaderField: "X-Device-ID") == "00000000-0000-4000-8000-000000000001")
        #expect(try await auth.sign(appID: app, method: "GET", url: request.url).fields.count == 6)
        var upload = URLRequest(url: try #require(URL(string: request.url)))
        try await auth.sign(&upload, appID: app, bodyFile: #filePath)
        #expect(upload.value(forHTTPHeaderField: "X-App-ID") == app)
        try await auth.correctClockSkew(serverTimestamp: 1_700_000_000)
        #expect(
            fake.calls.map(\.operation) == [.registerDevice, .send, .sign, .sign, .sign, .correctClockSkew])
    }

    @Test func `a scripted cancellation is CancellationError, and an error says whether the request may have happened`()
        async throws
    {
        let auth = FakeSynheartAuth()
        try await auth.registerDevice(appID: app)
        auth.fail(.send, with: .fromCode("NETWORK_ERROR", mayHaveHappened: true))
        auth.cancel(.send)
        do {
            _ = try await auth.send(request, appID: app)
        } catch let error as SynheartAuthError {
            #expect(error.mayHaveHappened && error.code == .networkError)
        }
        await #expect(throws: CancellationError.self) { try await auth.send(request, appID: app) }
        #expect(try await auth.send(request, appID: app).status == 200)
    }

    @Test func `a request that streams its answer gets the scripted bytes as a stream`() async throws {
        let auth = FakeSynheartAuth()
        try await auth.registerDevice(appID: app)
        auth.answer("/export", with: TransportResponse(status: 200, body: [1, 2]))
        let request = TransportRequest(
            method: "GET", url: "https://api.test/export", headers: HeaderFields(), body: [], streamsAnswer: true)
        for expected in [[1, 2], []] as [[UInt8]] {
            let answer = try await auth.send(request, appID: app)
            var body: [UInt8] = []
            for try await piece in try #require(answer.stream) { body += piece }
            #expect(body == expected && answer.body.isEmpty)
        }
    }

    @Test func `code that takes the protocol recovers as its author meant`() async throws {
        let auth = FakeSynheartAuth()
        #expect(try await upload(auth))
        #expect(auth.calls.map(\.operation) == [.send, .registerDevice, .send])
    }
}
