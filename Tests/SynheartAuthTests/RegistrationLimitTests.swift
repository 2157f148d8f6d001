import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// The exact limits of a registration, and what each failure keeps for the next attempt.
@Suite struct RegistrationLimitTests {
    /// A random source of zeros, so that retries have no jitter.
    private struct Zeros: RandomSource {
        func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    }

    /// A key store that says whether it attests keys, records their challenges, and fails to create a key if `failure` is set.
    private struct Attesting: KeyStore {
        let base: MemoryKeyStore
        var attestsKeys = true
        let failure = Locked<KeyStoreError?>(nil)
        let challenges = Locked<[[UInt8]?]>([])
        var protection: KeyProtection { base.protection }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            challenges.withLock { $0.append(challenge) }
            if let failure = failure.withLock({ $0 }) { throw failure }
            return try base.create(alias, challenge: challenge)
        }
        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            try base.sign(message, with: alias)
        }
        func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
    }

    /// Sends the challenge in place of a chain: the fake service accepts it as a chain that names the challenge.
    private struct Chains: AttestationProvider {
        var hasProof = true
        /// If set, `attest` fails unless the last key was created for the subject's challenge. A real host may fail in this way.
        var keys: Attesting?
        var platform: Platform { .android }
        func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
            if let keys, keys.challenges.withLock({ $0.last }) != subject.challenge {
                throw AttestationError(.unsupported, reason: "the key's chain names another challenge")
            }
            return AttestationEvidence(
                proof: hasProof ? TestAttestation.proof(of: subject.bindingNonce) : nil,
                keyAttestation: [subject.challenge])
        }
    }

    private func registers(_ phone: Phone) async -> [RegisterRequest] {
        await phone.service.requests.filter { $0.url.hasSuffix(Route.register.rawValue) }
            .compactMap { try? RegisterRequest(parsing: $0.body) }
    }

    @Test(arguments: [(88_999, true), (89_000, false), (89_500, false)])
    func `a busy provider is asked again only if the challenge outlives the pause`(
        milliseconds: Int, isAskedAgain: Bool
    ) async throws {
        let phone = Phone()
        // The pause takes one second, and the challenge lives for 90 seconds.
        phone.attestation.take(.milliseconds(milliseconds), of: phone.clock)
        phone.attestation.fail(.unavailable)
        let sdk = try phone.launch { $0.random = Zeros() }
        _ = try? await sdk.registerDevice(appID: Phone.app)
        let subjects = phone.attestation.subjects
        #expect(subjects.count >= 2 && subjects[0].handle == subjects[1].handle)
        #expect((subjects[0].nonce == subjects[1].nonce) == isAskedAgain)
    }

    @Test(arguments: [(89_999, 1), (90_000, 0)])
    func `a challenge is used until the last moment of its life`(milliseconds: Int, registrations: Int) async throws {
        let phone = Phone()
        phone.attestation.take(.milliseconds(milliseconds), of: phone.clock)
        _ = try? await phone.launch().registerDevice(appID: Phone.app)
        #expect(await phone.service.count(.register) == registrations)
    }

    @Test(arguments: [(599_999, 1), (600_000, 0)])
    func `a challenge lives ten minutes at most, whatever the service says`(
        milliseconds: Int, registrations: Int
    ) async throws {
        let phone = Phone()
        await phone.service.setLife(86_400)
        phone.attestation.take(.milliseconds(milliseconds), of: phone.clock)
        _ = try? await phone.launch().registerDevice(appID: Phone.app)
        #expect(await phone.service.count(.register) == registrations)
    }

    @Test func `a challenge's life counts from before it was requested`() async throws {
        let phone = Phone()
        await phone.network.plan(.answerLate, at: 0)
        try await phone.launch().registerDevice(appID: Phone.app)
        // The answer took 100 seconds, but the challenge lives for 90.
        #expect(await phone.service.count(.challenge) == 2)
        #expect(await phone.service.count(.register) == 1)
    }

    @Test func `a key store attests no keys unless it says so`() {
        #expect(!MemoryKeyStore().attestsKeys)
    }

    @Test(arguments: [true, false])
    func `a key that was not sent is used again, unless it names its challenge`(attestsKeys: Bool) async throws {
        let phone = Phone()
        let keys = Attesting(base: phone.keys, attestsKeys: attestsKeys)
        phone.attestation.fail(.refused)
        try await phone.launch { $0.keyStore = keys }.registerDevice(appID: Phone.app)
        let challenges = keys.challenges.withLock { $0.compactMap { $0 } }
        #expect(challenges.count == (attestsKeys ? 2 : 1))
        let sent = await registers(phone).map(\.challenge)
        #expect(sent.count == 1 && (sent == challenges.suffix(1)) == attestsKeys)
    }

    @Test func `a key that was sent is sent again without the chain of its spent challenge`() async throws {
        let phone = Phone()
        let keys = Attesting(base: phone.keys)
        await phone.network.plan(.answerDropped, at: 1)
        try await phone.launch {
            $0.keyStore = keys
            $0.attestation = Chains()
        }.registerDevice(appID: Phone.app)
        let sent = await registers(phone)
        #expect(sent.count == 2 && sent[0].publicKeyText == sent[1].publicKeyText)
        #expect(sent.map { $0.keyAttestation == nil } == [false, true])
        #expect(await phone.service.devices.count == 1)
    }

    @Test(arguments: [true, false])
    func `a new key follows once where the service wants the chain that is spent`(hasProof: Bool) async throws {
        let phone = Phone()
        let keys = Attesting(base: phone.keys)
        await phone.service.set { $0.demandsKeyAttestation = true }
        await phone.service.refuse(.register, .internalError)
        let sdk = try phone.launch {
            $0.keyStore = keys
            $0.attestation = Chains(hasProof: hasProof)
        }
        _ = try? await sdk.registerDevice(appID: Phone.app)
        let sent = await registers(phone)
        // The SDK sends the chain first. If the proof may suffice, it then sends the proof alone. Finally it sends a new key with
        // its chain.
        #expect(sent.map { $0.keyAttestation != nil } == (hasProof ? [true, false, true] : [true, true]))
        #expect(sent.first?.publicKeyText != sent.last?.publicKeyText && phone.keys.created == 2)
    }

    @Test func `if the host's only evidence is a chain that was already used, the SDK makes one new key`() async throws
    {
        let phone = Phone()
        let keys = Attesting(base: phone.keys)
        await phone.network.plan(.answerDropped, at: 1)
        let sdk = try phone.launch {
            $0.keyStore = keys
            $0.attestation = Chains(keys: keys)
        }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        let sent = await registers(phone)
        #expect(sent.count == 2 && sent[0].publicKeyText != sent[1].publicKeyText && phone.keys.created == 2)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    /// A phone that sent its registration and got no answer.
    private func unanswered() async throws -> (Phone, SynheartAuth) {
        let phone = Phone()
        let sdk = try phone.launch()
        await phone.network.plan(.answerDropped, at: 1)
        for index in 2...5 { await phone.network.plan(.requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.registerDevice(appID: Phone.app) }
        return (phone, sdk)
    }

    @Test func `the refusal of a key that the service may know needs a reset, and keeps the key`() async throws {
        let (phone, sdk) = try await unanswered()
        await phone.service.refuse(.register, .invalidAttestation)
        let error = await expectError(.attestationFailed) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.keys.created == 1)
        #expect(await phone.service.devices.count == 1)
    }

    @Test func `a key that was sent once counts as known, although a later attempt never sends it`() async throws {
        let (phone, sdk) = try await unanswered()
        let journal = try phone.record().journal
        guard case .registration(_, isSent: true) = journal else { throw StorageError("not sent") }
        phone.attestation.fail(.unsupported)
        await expectError(.attestationUnavailable) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try phone.record().journal == journal)
    }

    @Test func `a new key takes the place of a sent one that is lost`() async throws {
        let (phone, sdk) = try await unanswered()
        phone.keys.lose()
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await sdk.isRegistered(appID: Phone.app))
    }

    @Test func `the refusal of a new key forgets it`() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .invalidAttestation)
        let sdk = try phone.launch()
        let error = await expectError(.attestationFailed) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(error?.recovery == SynheartAuthError.Recovery.none)
        #expect(try phone.record().journal == nil && phone.record().attestationKey == nil)
        try await sdk.registerDevice(appID: Phone.app)
        #expect(phone.keys.created == 2)
    }

    @Test func `a new key that is not found before it signs is used once it is found`() async throws {
        let phone = Phone()
        phone.keys.fail(KeyStoreError(.notFound))
        let sdk = try phone.launch()
        await expectSuspicion(.keystoreError, on: phone.clock) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.keys.created == 1)
    }

    @Test func `a new key that is lost before it signs is made again`() async throws {
        let phone = Phone()
        phone.keys.fail(KeyStoreError(.invalidated))
        let sdk = try phone.launch()
        await expectError(.keyInvalidated) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try phone.record().journal == nil)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.keys.created == 2)
    }

    @Test func `a key that cannot sign now is kept`() async throws {
        let phone = Phone()
        phone.keys.fail(KeyStoreError(.unavailable))
        let sdk = try phone.launch()
        await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(phone.keys.created == 1)
    }

    @Test(arguments: KeyStoreError.Code.allCases)
    func `a key that cannot be made is never an invalidated one`(code: KeyStoreError.Code) async throws {
        let phone = Phone()
        let keys = Attesting(base: phone.keys, attestsKeys: false)
        keys.failure.withLock { $0 = KeyStoreError(code) }
        let sdk = try phone.launch { $0.keyStore = keys }
        let error = await expectError(code == .misconfigured ? .notConfigured : .keystoreError) {
            try await sdk.registerDevice(appID: Phone.app)
        }
        #expect(error?.isRetryable == (code == .unavailable))
        #expect(await phone.service.count(.register) == 0)
    }

    @Test func `a registration without evidence is not sent`() async throws {
        struct Nothing: AttestationProvider {
            let platform = Platform.android
            func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
                AttestationEvidence(proof: nil)
            }
        }
        let phone = Phone()
        let sdk = try phone.launch { $0.attestation = Nothing() }
        await expectError(.attestationFailed) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(await phone.service.count(.register) == 0)
    }

    @Test func `an attempt is logged with its error, and a registration with the time it took`() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .serviceUnavailable, retryAfter: 17)
        phone.attestation.take(.seconds(3), of: phone.clock)
        try await phone.launch().registerDevice(appID: Phone.app)
        let events = phone.logger.entries.filter { $0.event != .stateChanged }
        #expect(events.map(\.event) == [.registrationStarted, .attemptFailed, .registrationFinished])
        #expect(events.map(\.code) == [nil, .networkError, nil])
        #expect(events.last?.duration == .seconds(3 + 17 + 3))
        let failed = Phone()
        failed.attestation.take(.seconds(3), of: failed.clock)
        failed.attestation.fail(.unsupported)
        await expectError(.attestationUnavailable) { try await failed.launch().registerDevice(appID: Phone.app) }
        let last = try #require(failed.logger.entries.last)
        #expect(last.event == .registrationFailed && last.level == .warning && last.duration == .seconds(3))
    }

    @Test func `each registration of a cycle has its own five attempts`() async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.random = Zeros() }
        for _ in 0..<2 {
            await phone.service.refuse(.challenge, .serviceUnavailable, times: 5)
            await expectError(.networkError) { try await sdk.registerDevice(appID: Phone.app) }
        }
        #expect(await phone.service.count(.challenge) == 10)
        #expect(phone.sleeper.retries == [1, 2, 4, 8, 1, 2, 4, 8].map { .seconds($0) })
    }

    @Test(arguments: [IdentityState.challengeReceived, .keyReady, .registering])
    func `a registration that was cut short starts again with its key and its handle`(state: IdentityState) async throws
    {
        let phone = Phone()
        let sdk = try phone.launch()
        let ledger = try sdk.identity(Phone.app).context.ledger
        let alias = KeyAlias.primary(ledger.appID)
        let key = try phone.keys.create(alias, challenge: nil)
        try await ledger.apply(.challengeReceived(authOrigin: FakeService.origin))
        try await ledger.apply(.attestationKeyMade(id: "kept"))
        if state != .challengeReceived {
            try await ledger.apply(.keyReady(.init(alias: alias, thumbprint: key.thumbprint), isReused: false))
        }
        if state == .registering { try await ledger.apply(.registrationSending(.ios)) }
        #expect(try phone.record().state == state)
        try await sdk.registerDevice(appID: Phone.app)
        // In `challengeReceived` the record does not name the key yet, so the attempt makes another one.
        #expect(phone.keys.created == (state == .challengeReceived ? 2 : 1))
        #expect(phone.attestation.subjects.map(\.handle) == [state == .registering ? "handle-1" : "kept"])
    }

    @Test func `a pending device whose key is lost forgets it, although the next attempt fails`() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        try await sdk.registerDevice(appID: Phone.app)
        phone.keys.lose()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.registerDevice(appID: Phone.app) }
        let record = try phone.record()
        #expect(record.state == .unregistered && record.journal == nil && record.attestationKey == nil)
    }
}
