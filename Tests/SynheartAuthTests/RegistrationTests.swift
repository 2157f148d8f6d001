import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// The registration flow and its table of failure paths, a test for each row.
@Suite struct RegistrationTests {
    @Test("after the eight steps a signature by the key verifies")
    func steps() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let device = try #require(await phone.service.devices.first)
        #expect(device.id.text == id)
        #expect(phone.keys.aliases == ["synheart_auth_com.example.app"])
        #expect(try await phone.signAndVerify(sdk).status == 200)
        let record = try phone.record()
        #expect(record.platform == .ios && record.registeredAt == device.registeredAt && record.keyRotatedAt == nil)
    }

    @Test("a second registration is alreadyRegistered without network")
    func idempotent() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let messages = await phone.network.messages
        #expect(
            try await sdk.registerDevice(appID: Phone.app) == Registration(status: .alreadyRegistered, deviceId: id))
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .alreadyRegistered)
        #expect(await phone.network.messages == messages)
    }

    @Test("registration sends the id that the app gave the device, and none by default")
    func localID() async throws {
        struct Watching: HTTPTransport {
            let base: TestNetwork
            let seen: Locked<[String?]>
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                if request.url.hasSuffix(Route.register.rawValue),
                    let body = try? RegisterRequest(parsing: request.body)
                {
                    seen.withLock { $0.append(body.deviceLocalID) }
                }
                return try await base.send(request)
            }
        }
        let (id, seen) = (UUID(), Locked<[String?]>([]))
        for local in [nil, id] {
            let phone = Phone()
            let sdk = try phone.launch {
                $0.transport = Watching(base: phone.network, seen: seen)
                $0.deviceLocalID = local
            }
            try await sdk.registerDevice(appID: Phone.app)
        }
        #expect(seen.withLock { $0 } == [nil, id.uuidString.lowercased()])
    }

    @Test("two apps on one device are independent")
    func independent() async throws {
        let (_, sdk, id) = try await Phone.registered()
        let other = try await sdk.registerDevice(appID: "com.example.other")
        #expect(other.status == .registered && other.deviceId != id)
        try await sdk.resetDeviceIdentity(appID: "com.example.other", reason: .userRequested)
        #expect(try await sdk.isRegistered(appID: Phone.app))
    }

    @Test("a failed challenge request is retried with back-off")
    func challengeFails() async throws {
        let phone = Phone()
        await phone.service.refuse(.challenge, .serviceUnavailable, times: 2)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.sleeper.retries.count == 2)
        let offline = Phone()
        await offline.network.setOffline(true)
        let error = await expectError(.networkError) { try await offline.launch().registerDevice(appID: Phone.app) }
        #expect(error?.isRetryable == true && error?.recovery == .retry)
        #expect(await offline.network.messages == 5)
    }

    @Test("an expired challenge is replaced")
    func challengeExpired() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .challengeExpired)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(await phone.service.count(.challenge) == 2)
        #expect(phone.keys.created == 1)
    }

    @Test("a challenge that expired before register is never sent")
    func challengeExpiresLocally() async throws {
        let phone = Phone()
        phone.attestation.take(.seconds(91), of: phone.clock)
        await expectError(.challengeExpired) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(await phone.service.count(.challenge) == 5)
        #expect(await phone.service.count(.register) == 0)
    }

    @Test("a challenge without a life is not the service's answer")
    func noLife() async throws {
        let phone = Phone()
        await phone.service.setLife(0)
        await expectError(.networkError) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(await phone.service.count(.register) == 0)
    }

    @Test("a wrong wall clock does not make a challenge expire")
    func wallClockIsNotAsked() async throws {
        let phone = Phone()
        phone.clock.setError(.seconds(10 * 365 * 86_400))
        phone.clock.setJumps(.seconds(3600))
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("unsupported attestation is ATTESTATION_UNAVAILABLE, without a retry")
    func unsupported() async throws {
        let phone = Phone()
        phone.attestation.fail(.unsupported)
        let error = await expectError(.attestationUnavailable) {
            try await phone.launch().registerDevice(appID: Phone.app)
        }
        #expect(error?.isRetryable == false)
        #expect(phone.attestation.subjects.count == 1)
        #expect(try phone.record().state == .unregistered)
    }

    @Test("a refused attestation is tried once more with a new challenge")
    func refusedOnce() async throws {
        let phone = Phone()
        phone.attestation.fail(.refused)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(await phone.service.count(.challenge) == 2)
    }

    @Test("an attestation refused twice is ATTESTATION_FAILED")
    func refusedTwice() async throws {
        let phone = Phone()
        phone.attestation.fail(.refused, .refused, .refused)
        await expectError(.attestationFailed) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(phone.attestation.subjects.count == 2)
    }

    @Test("after INVALID_CHALLENGE the registration starts again")
    func invalidChallenge() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .invalidChallenge)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(await phone.service.count(.challenge) == 2)
    }

    @Test("INVALID_ATTESTATION is ATTESTATION_FAILED, not retried")
    func invalidAttestation() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .invalidAttestation)
        await expectError(.attestationFailed) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(await phone.service.count(.register) == 1)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a failed register is retried with a new challenge and the same key")
    func registerFails() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .internalError, times: 3)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        let challenges = await phone.service.requests.filter { $0.url.hasSuffix(Route.register.rawValue) }
            .compactMap { try? RegisterRequest(parsing: $0.body).challenge }
        #expect(Set(challenges).count == 4)
        #expect(phone.keys.created == 1)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("a registered device runs no operation")
    func alreadyRegistered() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let before = try phone.record()
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .alreadyRegistered)
        #expect(try phone.record() == before)
    }

    @Test("concurrent callers join unless they ask not to")
    func inProgress() async throws {
        let phone = Phone()
        phone.attestation.hold()
        let sdk = try phone.launch()
        let first = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { phone.attestation.subjects.count == 1 }
        await expectError(.registrationInProgress) {
            try await sdk.registerDevice(appID: Phone.app, joins: false)
        }
        let second = Task { try await sdk.registerDevice(appID: Phone.app) }
        phone.attestation.letGo()
        #expect(try await first.value.deviceId == second.value.deviceId)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("1,000 concurrent calls are one registration with one result")
    func thousand() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        let results = try await withThrowingTaskGroup(of: Registration.self) { group in
            for _ in 0..<1000 { group.addTask { try await sdk.registerDevice(appID: Phone.app) } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1.deviceId) }
        }
        #expect(results.count == 1)
        #expect(await phone.service.devices.count == 1)
        #expect(await phone.service.count(.register) == 1)
    }

    @Test("a second process takes over the first one's registration")
    func twoProcesses() async throws {
        let phone = Phone()
        let (app, widget) = (try phone.launch(), try phone.launch())
        async let first = app.registerDevice(appID: Phone.app)
        async let second = widget.registerDevice(appID: Phone.app)
        let results = try await [first, second]
        #expect(results[0].deviceId == results[1].deviceId)
        #expect(await phone.service.devices.count == 1)
        #expect(await phone.service.count(.register) == 1)
    }

    @Test("a cancelled caller does not affect those who joined")
    func cancelled() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        let first = Task { try await sdk.registerDevice(appID: Phone.app) }
        first.cancel()
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId.isEmpty == false)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("a pending device has its id, cannot sign, and asks for the decision")
    func pending() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        let first = try await sdk.registerDevice(appID: Phone.app)
        #expect(first.status == .pending)
        #expect(try await sdk.state(appID: Phone.app) == .registering)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == first.deviceId)
        #expect(try await sdk.isRegistered(appID: Phone.app) == false)
        await expectError(.notRegistered) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .pending)
        await phone.service.edit(first.deviceId) { $0.status = .registered }
        #expect(
            try await phone.launch().registerDevice(appID: Phone.app)
                == Registration(status: .registered, deviceId: first.deviceId))
        #expect(await phone.service.count(.register) == 1)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a rejected device is unregistered, and is rejected again with the same key")
    func rejected() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        await phone.service.edit(id) { $0.status = .rejected }
        await expectError(.attestationFailed) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try await sdk.state(appID: Phone.app) == .unregistered)
        await expectError(.attestationFailed) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(await phone.service.devices.count == 1)
    }

    @Test("a pending device that is revoked gets DEVICE_REVOKED")
    func pendingRevoked() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(try await sdk.state(appID: Phone.app) == .registering)
    }

    @Test("a pending device whose key is lost starts over")
    func pendingKeyLost() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        try await sdk.registerDevice(appID: Phone.app)
        phone.keys.lose()
        await phone.service.set { $0.decision = .registered }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a busy provider is asked again with the same handle and nonce")
    func providerBusy() async throws {
        let phone = Phone()
        phone.attestation.fail(.unavailable, .unavailable)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.attestation.handles == 1)
        #expect(Set(phone.attestation.subjects.map(\.nonce)).count == 1)
        #expect(phone.attestation.subjects.count == 3)
    }

    @Test("a provider that stays busy is asked five times, with the back-off of a registration")
    func providerStaysBusy() async throws {
        let phone = Phone()
        phone.attestation.fail(.unavailable, .unavailable, .unavailable, .unavailable, .unavailable)
        let error = await expectError(.attestationFailed) {
            try await phone.launch().registerDevice(appID: Phone.app)
        }
        #expect(error?.recovery == .retry && phone.attestation.subjects.count == 5)
        let seconds = phone.sleeper.retries.map(\.components.seconds)
        #expect(seconds == [1, 2, 4, 8])
    }

    @Test(
        "a handle that cannot be made fails the registration as the provider says",
        arguments: [
            (AttestationError.Code.unsupported, SynheartAuthError.Code.attestationUnavailable, 1),
            (.noAnswer, .attestationFailed, 1), (.refused, .attestationFailed, 2),
            (.unavailable, .attestationFailed, 2),
        ])
    func noHandle(failure: AttestationError.Code, code: SynheartAuthError.Code, attempts: Int) async throws {
        struct Failing: AttestationProvider {
            let failure: AttestationError.Code
            let count = Locked(0)
            let platform = Platform.ios
            func makeHandle() async throws(AttestationError) -> String? {
                count.withLock { $0 += 1 }
                throw AttestationError(failure)
            }
            func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
                throw AttestationError(.unsupported)
            }
        }
        let provider = Failing(failure: failure)
        let sdk = try Phone().launch { $0.attestation = provider }
        let error = await expectError(code) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(provider.count.withLock { $0 } == attempts)
        #expect(error?.recovery == (failure == .noAnswer ? .retry : SynheartAuthError.Recovery.none))
    }

    @Test("an invalid handle is replaced once")
    func invalidHandle() async throws {
        let phone = Phone()
        phone.attestation.fail(.handleInvalid)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.attestation.subjects.map(\.handle) == ["handle-1", "handle-2"])
        let broken = Phone()
        broken.attestation.fail(.handleInvalid, .handleInvalid, .handleInvalid)
        await expectError(.attestationFailed) { try await broken.launch().registerDevice(appID: Phone.app) }
        #expect(broken.attestation.subjects.count == 2)
    }

    @Test("an attested handle is never attested again")
    func usedHandle() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .internalError)
        try await phone.launch().registerDevice(appID: Phone.app)
        #expect(phone.attestation.subjects.map(\.handle) == ["handle-1", "handle-2"])
    }

    @Test("a provider that hangs fails the registration after 30 seconds, and the next one keeps its handle")
    func hangingProvider() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        phone.attestation.hang(times: 1)
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { phone.attestation.subjects.count == 1 }
        phone.sleeper.expire()
        let error = await expectError(.attestationFailed) { try await registration.value }
        #expect(error?.isRetryable == true && error?.recovery == .retry)
        #expect(phone.attestation.subjects.count == 1 && phone.sleeper.retries.isEmpty)
        #expect(try phone.record().state == .unregistered)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.attestation.subjects.map(\.handle) == ["handle-1", "handle-1"])
    }

    #if DEBUG
        @Test("development mode sends its header, the fixed proof and a key proof")
        func developmentMode() async throws {
            for isDevelopment in [true, false] {
                let phone = Phone()
                let sdk = try phone.launch { if isDevelopment { $0.attestation = DevelopmentAttestation() } }
                _ = try? await sdk.registerDevice(appID: Phone.app)
                let requests = await phone.service.requests
                let body = try #require(
                    requests.compactMap { try? RegisterRequest(parsing: $0.body) }.first { $0.keyProof != nil })
                #expect((body.proof == RegisterRequest.developmentProof) == isDevelopment)
                let header = isDevelopment ? ["true"] : []
                #expect(requests.allSatisfy { $0.headers.values(HeaderName.developmentMode) == header })
            }
        }
    #endif

    @Test("another origin under the same app id is STORAGE_ERROR until reset")
    func otherOrigin() async throws {
        let (phone, _, _) = try await Phone.registered()
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://other.test")
        configuration.transport = phone.network
        configuration.storage = phone.storage
        configuration.keyStore = phone.keys
        configuration.sleeper = phone.sleeper
        configuration.clock = phone.clock
        let other = SynheartAuth(configuration)
        for call in [
            { _ = try await other.isRegistered(appID: Phone.app) },
            { _ = try await other.registerDevice(appID: Phone.app) },
            { _ = try await other.signRequest(appID: Phone.app, method: "GET", path: "/") },
        ] as [@Sendable () async throws -> Void] {
            let error = await expectError(.storageError) { try await call() }
            #expect(error?.recovery == .reset)
            // The service may have moved to a new origin, so the message names both origins and the remedy.
            for part in [FakeService.origin, "https://other.test", "alias"] {
                #expect(error?.message.contains(part) == true)
            }
        }
        try await other.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(try await other.getDeviceId(appID: Phone.app) == nil)
    }

    @Test("on a full disk the record of an alias signs, and moves later")
    func aliasOnFullDisk() async throws {
        let (phone, _, id) = try await Phone.registered()
        let new = "https://new.test"
        var configuration = try phone.configuration
        let before = try phone.record()
        configuration = try SynheartAuth.Configuration(baseUrl: new)
        configuration.aliases = [try RequestOrigin(FakeService.origin)]
        (configuration.transport, configuration.storage) = (phone.network, phone.storage)
        (configuration.keyStore, configuration.attestation) = (phone.keys, phone.attestation)
        (configuration.sleeper, configuration.clock) = (phone.sleeper, phone.clock)
        let sdk = SynheartAuth(configuration)
        phone.storage.refuseWrites(true)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try phone.record() == before)
        phone.storage.refuseWrites(false)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try phone.record().authOrigin == new)
    }

    @Test("a record of an alias moves along without a request, and back only if that is an alias too")
    func alias() async throws {
        let (phone, _, id) = try await Phone.registered()
        let sent = await phone.service.requests.count
        func launch(_ baseURL: String, alias: String? = nil) throws -> SynheartAuth {
            var configuration = try SynheartAuth.Configuration(baseUrl: baseURL)
            configuration.aliases = Set(try [alias].compactMap(\.self).map { try RequestOrigin($0) })
            configuration.transport = phone.network
            configuration.storage = phone.storage
            configuration.keyStore = phone.keys
            configuration.attestation = phone.attestation
            configuration.sleeper = phone.sleeper
            configuration.clock = phone.clock
            return SynheartAuth(configuration)
        }
        let new = "https://new.test"
        let moved = try launch(new, alias: FakeService.origin)
        #expect(try await moved.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(moved).status == 200)
        #expect(try phone.record().authOrigin == new)
        // The app needs the alias (the earlier origin) only until the record names the new origin.
        #expect(try await launch(new).isRegistered(appID: Phone.app))
        await expectError(.storageError) { try await launch(FakeService.origin).isRegistered(appID: Phone.app) }
        #expect(await phone.service.requests.count == sent + 1)
        let back = try launch(FakeService.origin, alias: new)
        #expect(try await back.rotateKey(appID: Phone.app).deviceId == id)
        #expect(try phone.record().authOrigin == FakeService.origin)
    }

    @Test(
        "a base URL that is not an https origin is refused",
        arguments: [
            "", "auth.example.com", "http://auth.example.com", "http://127.0.0.1.evil.test", "ftp://127.0.0.1",
            "https://user@auth.example.com", "https://auth.example.com/path", "https://auth.example.com?q",
            "https://auth.example.com#f", "https://", "http://10.0.0.1", "https://auth.example.com:99999",
            "http://127.0.0.1@evil.test/", "file:///etc/passwd",
        ])
    func badBaseURL(text: String) async {
        await expectError(.notConfigured) { try SynheartAuth.Configuration(baseUrl: text).baseUrl }
    }

    @Test(
        "https and local http URLs are accepted",
        arguments: [
            ("https://Auth.Example.com/", "https://auth.example.com"),
            ("https://auth.example.com:443", "https://auth.example.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"), ("http://localhost", "http://localhost"),
            ("http://[::1]:80", "http://[::1]"),
        ])
    func goodBaseURL(text: String, origin: String) throws {
        #expect(try SynheartAuth.Configuration(baseUrl: text).baseUrl == origin)
    }

    @Test("before configure everything throws NOT_CONFIGURED")
    func notConfigured() async {
        let sdk = SynheartAuth.shared
        await expectError(.notConfigured) { try await sdk.isRegistered(appID: Phone.app) }
        await expectError(.notConfigured) { try await sdk.registerDevice(appID: Phone.app) }
        await expectError(.notConfigured) { try await sdk.rotateKey(appID: Phone.app) }
        await expectError(.notConfigured) { try sdk.configure(baseUrl: "http://evil.test") }
    }
}
