import AuthContract
import Testing

@testable import SynheartAuth

/// For each of the SDK's error codes: what causes it, and how the SDK reacts (specification, *Errors*).
@Suite struct TaxonomyRowTests {
    private func get(_ sdk: SynheartAuth) async throws -> SignedHeaders {
        try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
    }

    @Test("NETWORK_ERROR of challenge or register is retried with back-off", arguments: [0, 1])
    func networkError(message: Int) async throws {
        let phone = Phone()
        await phone.network.plan(.requestDropped, at: message)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.sleeper.retries.count == 1)
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await phone.launch().registerDevice(appID: "com.example.other") }
    }

    @Test("after CHALLENGE_EXPIRED a new challenge is fetched")
    func challengeExpired() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .challengeExpired)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(await phone.service.count(.challenge) == 2)
    }

    @Test("a device that cannot attest gets ATTESTATION_UNAVAILABLE")
    func attestationUnavailable() async throws {
        let phone = Phone()
        phone.attestation.fail(.unsupported)
        await expectError(.attestationUnavailable) { try await phone.launch().registerDevice(appID: Phone.app) }
    }

    @Test("a provider's refusal is retried once, then ATTESTATION_FAILED")
    func attestationFailed() async throws {
        let phone = Phone()
        phone.attestation.fail(.refused, .refused)
        await expectError(.attestationFailed) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(phone.attestation.subjects.count == 2)
    }

    @Test("KEY_INVALIDATED leads to keyInvalid, and the next registerDevice starts over")
    func keyInvalidated() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.keys.lose()
        await expectError(.keyInvalidated) { try await get(sdk) }
        #expect(try await sdk.state(appID: Phone.app) == .keyInvalid)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
    }

    @Test("KEYSTORE_ERROR has the platform's details")
    func keystoreError() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(.failed, status: -67_671, reason: "keymaster"))
        let error = await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(error?.message.contains("-67671") == true && error?.isRetryable == true)
    }

    @Test("SECURE_ENCLAVE_ERROR has the platform's details")
    func secureEnclaveError() {
        let error = SynheartAuthError.keyStore(KeyStoreError(.failed, status: -26_276, reason: "sep"), .secureEnclave)
        #expect(error.code == .secureEnclaveError && error.message.contains("-26276"))
    }

    @Test("SIGNING_FAILED is thrown at once")
    func signingFailed() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(.failed))
        let error = await expectError(.signingFailed) { try await get(sdk) }
        #expect(error?.retryAfter == .seconds(2) && phone.sleeper.retries.isEmpty)
    }

    @Test("after DEVICE_REVOKED only a reset allows a new registration")
    func deviceRevoked() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        // The SDK must not register again, because that would undo the revocation.
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .serverInstructed)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("after CLOCK_SKEW the SDK learns the offset and sends again")
    func clockSkew() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(3600))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 2)
        #expect(try phone.record().clockOffset.milliseconds == -3_600_000)
    }

    @Test("after ROTATION_FAILED the old key stays active")
    func rotationFailed() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let key = try phone.record().key
        await phone.service.refuse(.rotateKey, .rotationFailed)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try error?.recovery == .retry && phone.record().key == key)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        phone.clock.advance(error?.retryAfter ?? .zero)
        try await sdk.rotateKey(appID: Phone.app)
    }

    @Test("after NONCE_REPLAY the SDK sends a new nonce, once")
    func nonceReplay() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, .nonceReplay)
        _ = try await sdk.deviceToken(appID: Phone.app)
        let sent = await phone.service.requests.filter { $0.url.hasSuffix(Route.token.rawValue) }
        #expect(Set(sent.map { $0.headers.values("X-Synheart-Nonce") }).count == 2)
        await phone.service.refuse(.token, .nonceReplay, times: 2)
        await expectError(.nonceReplay) { try await sdk.deviceToken(appID: Phone.app, audience: "other") }
        #expect(await phone.service.count(.token) == 4)
    }

    @Test("registering again succeeds without network")
    func alreadyRegistered() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let messages = await phone.network.messages
        let again = try await sdk.registerDevice(appID: Phone.app)
        #expect(again == Registration(status: .alreadyRegistered, deviceId: id))
        #expect(await phone.network.messages == messages)
    }

    @Test("signRequest before registration is NOT_REGISTERED")
    func notRegistered() async throws {
        let phone = Phone()
        let error = await expectError(.notRegistered) { try await get(phone.launch()) }
        #expect(error?.recovery == .register)
    }

    @Test("a call before configure is NOT_CONFIGURED")
    func notConfigured() async throws {
        let error = await expectError(.notConfigured) { try await get(.shared) }
        #expect(error?.recovery == .configure)
    }

    @Test("a concurrent registerDevice that does not join is REGISTRATION_IN_PROGRESS")
    func registrationInProgress() async throws {
        let phone = Phone()
        phone.attestation.hold()
        let sdk = try phone.launch()
        let first = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { phone.attestation.subjects.count == 1 }
        let error = await expectError(.registrationInProgress) {
            try await sdk.registerDevice(appID: Phone.app, joins: false)
        }
        #expect(error?.isRetryable == true)
        phone.attestation.letGo()
        #expect(try await first.value.status == .registered)
    }

    @Test("CRYPTO_ERROR has its message")
    func cryptoError() async throws {
        let error = SynheartAuthError.fromCode("CRYPTO_ERROR", "why")
        #expect(error.message == "why" && error.className == .cryptoError && error.recovery == .none)
    }

    @Test("STORAGE_ERROR has the storage's message")
    func storageError() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.storage.refuseWrites(true)
        let error = await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.message.contains("No space left") == true)
    }

    @Test("INVALID_STATE_TRANSITION has both states and is logged at error level")
    func invalidStateTransition() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        let error = await expectError(.invalidStateTransition) { try await ledger.apply(.wiped) }
        #expect(error?.transition == StateTransition(from: .registered, to: .unregistered))
        #expect(phone.logger.entries.last { $0.code == .invalidStateTransition }?.level == .error)
    }

    @Test("any other code of the service is a ServerError, not retried")
    func serverError() async throws {
        let phone = Phone()
        await phone.service.refuse(.challenge, .unknownApp)
        let error = await expectError(.server("UNKNOWN_APP")) {
            try await phone.launch().registerDevice(appID: Phone.app)
        }
        #expect(error?.className == .serverError && error?.message == "refused" && error?.isRetryable == false)
        #expect(await phone.network.messages == 1)
    }
}
