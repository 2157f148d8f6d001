internal import AuthContract
internal import Bytes
internal import Crypto

internal import struct Foundation.Data

/// The dependencies of every operation on one identity. A class, so that passing it on copies only a reference.
final class IdentityContext: Sendable {
    let appID: AppID
    let recordName: RecordName
    let configuration: SynheartAuth.Configuration
    let ledger: IdentityLedger
    let log: IdentityLog
    let service: ServiceClient
    let quickSigner = Locked<CachedSigner?>(nil)
    let run: ProcessRun
    let demands = OriginDemands()
    /// Sends the requests with assertions one at a time, because the counters of their assertions must arrive in order.
    let assertions = SerialTaskQueue()

    var clock: any DeviceClock { configuration.clock }
    var sleeper: any Sleeper { configuration.sleeper }
    var random: any RandomSource { configuration.random }
    var attestation: any AttestationProvider { configuration.attestation }

    init(appID: AppID, configuration: SynheartAuth.Configuration, changes: StateChanges) {
        self.appID = appID
        recordName = RecordName(appID)
        self.configuration = configuration
        log = IdentityLog(appID: appID, logger: configuration.logger)
        run = ProcessRun(configuration.clock)
        ledger = IdentityLedger(
            appID: appID, authOrigin: configuration.origin.text,
            aliases: Set(configuration.aliases.map(\.description)), storage: configuration.storage,
            calls: configuration.storageCalls, keyCalls: configuration.keyCalls, runningTime: configuration.runningTime,
            sleeper: configuration.sleeper, log: log, changes: changes,
            suspicions: RecordSuspicions(run))
        service = ServiceClient(
            origin: configuration.origin, transport: configuration.transport, clock: configuration.clock,
            sleeper: configuration.sleeper, isDevelopment: configuration.isDevelopment)
    }

    /// Makes one call of the key store, outside Swift's thread pool.
    func keys<Value: Sendable>(
        _ call: BlockingCall, _ body: @escaping @Sendable (any KeyStore) throws(KeyStoreError) -> Value
    ) async throws(KeyStoreError) -> Value {
        if call.isChange {
            do throws(SynheartAuthError) { try HeldLock.operation?.check() } catch {
                throw KeyStoreError(.unavailable, reason: error.message)
            }
        }
        let store = configuration.keyStore
        let ending = await configuration.keyCalls.run(call, limit: .provider(sleeper)) {
            () -> Result<Value, KeyStoreError> in
            do throws(KeyStoreError) { return .success(try body(store)) } catch { return .failure(error) }
        }
        switch ending {
        case .returned(let result): return try result.get()
        case .noAnswer: throw Self.noAnswer
        case .cancelled: throw KeyStoreError(.unavailable, reason: "cancelled")
        }
    }

    private static let noAnswer = KeyStoreError(.unavailable, reason: "the key store does not answer")

    /// Throws while an abandoned call that changes the key store has not returned: it may still create or delete a key.
    func checkKeyStore() throws(SynheartAuthError) {
        if configuration.keyCalls.hasChangeLeftBehind { throw error(Self.noAnswer) }
    }

    func error(_ error: KeyStoreError) -> SynheartAuthError { .keyStore(error, configuration.keyStore.protection) }

    /// The public half of the referenced key; nil if the key is lost.
    func publicKey(_ reference: IdentityRecord.KeyReference) async throws(SynheartAuthError) -> DevicePublicKey? {
        do throws(KeyStoreError) {
            let key = try await keys(.loadKey) { store throws(KeyStoreError) in try store.load(reference.alias) }
            guard let key else { throw KeyStoreError(.notFound, reason: "no such key") }
            guard key.thumbprint == reference.thumbprint else {
                throw KeyStoreError(.notFound, reason: "another key has this name")
            }
            return key
        } catch {
            let error = await judged(error, reference)
            if error.code == .keyInvalidated { return nil }
            throw error
        }
    }

    /// Deletes a key, best effort. If the key store refuses, the key stays until a new key of the same name replaces it.
    ///
    /// - Throws: If the key store does not answer: a late deletion must not hit a new key of the same name.
    func deleteKey(_ alias: KeyAlias) async throws(SynheartAuthError) {
        try? await keys(.deleteKey) { store throws(KeyStoreError) in try store.delete(alias) }
        try checkKeyStore()
    }

    /// Calls the service. Learns two things from the answer, best effort: the service's clock, and whether the service demands that
    /// the key that signed the call is rotated.
    func call(
        _ route: Route, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        signedBy key: IdentityRecord.KeyReference? = nil, deadline: Duration = .seconds(30)
    ) async throws(SynheartAuthError) -> ServiceClient.Response {
        try HeldLock.operation?.check()
        let outcome = await service.exchange(route, headers: headers, body: body, deadline: deadline)
        if let offset = outcome.offset { await learn(offset) }
        if let key, outcome.showsDemand { await learn(outcome.rotationDemand, of: key) }
        return try outcome.result.get()
    }

    private func learn(_ demand: RotationDemand?, of key: IdentityRecord.KeyReference) async {
        guard let record = try? await ledger.load(), record.rotationDemand != demand else { return }
        _ = try? await ledger.apply(.rotationDemanded(demand, of: key))
    }

    private func learn(_ offset: ClockOffset) async {
        guard let record = try? await ledger.load(), offset.isNews(comparedTo: record.clockOffset) else { return }
        _ = try? await ledger.apply(.clockLearned(offset))
    }

    /// Whether one of the SDK's own requests carries an assertion.
    enum Asserting: Sendable, Hashable {
        /// With an assertion by the identity's App Attest key, if the service demands an assertion.
        case asDemanded
        /// With an assertion by this key, if the service demands an assertion. The service may already expect this key: a
        /// rotation whose answer was lost may have bound it.
        case asDemandedBy(IdentityRecord.AttestationKey)
        /// Without an assertion, because the body has its own evidence, or because no key can assert.
        case never

        var key: IdentityRecord.AttestationKey? { if case .asDemandedBy(let key) = self { key } else { nil } }
    }

    /// Sends a signed request of the SDK's own. Signs again once for each refusal that ``RetryTable`` answers by signing again.
    ///
    /// - Parameters:
    ///   - route: The route.
    ///   - body: The body.
    ///   - record: The identity that signs.
    ///   - alias: The key that signs.
    ///   - deadline: The limit of each exchange, and of each wait for running requests with assertions.
    ///   - asserting: Whether the request may carry an assertion.
    ///   - beforeSending: Runs before each copy leaves, with its timestamp.
    func signedCall(
        _ route: Route, body: [UInt8] = [], record: IdentityRecord, alias: KeyAlias, deadline: Duration = .seconds(30),
        asserting: Asserting = .asDemanded,
        beforeSending: @escaping @Sendable (UnixTime) async throws(SynheartAuthError) -> Void = { _ in }
    ) async throws(SynheartAuthError) -> ServiceClient.Response {
        var record = record
        var seen: Set<SynheartAuthError.Code> = []
        let origin = configuration.origin.origin
        var scheme = demands.scheme(of: origin) ?? scheme(for: record)
        // Whether the service demanded an assertion in this call. `demands` is bounded and may not store the demand.
        var isAssertionDemanded = false
        while true {
            let start = clock.continuous
            let sign = { @Sendable [self, record, scheme] () async throws(SynheartAuthError) in
                try await RequestSigner(context: self).sign(scheme, route, body: body, record: record, alias: alias)
            }
            let exchange = { @Sendable [self] (signed: SignedMessage) async throws(SynheartAuthError) in
                try await beforeSending(signed.timestamp)
                return try await call(
                    route, headers: signed.fields, body: body, signedBy: signed.key, deadline: deadline)
            }
            let asserts =
                asserting != .never && (isAssertionDemanded || demands.needsAssertion(route.rawValue, at: origin))
            do throws(SynheartAuthError) {
                let answer =
                    try await asserts
                    ? sendAsserting(by: asserting.key, waitLimit: .forAssertions(deadline, sleeper), sign, exchange)
                    : exchange(try await sign())
                if seen.contains(.server(ErrorCode.unsupportedSigVersion.rawValue)) {
                    demands.note(scheme, of: origin)
                }
                await noteScheme(scheme, record)
                return answer
            } catch {
                // The service gives some refusals only after it has accepted the signature.
                if seen.contains(.server(ErrorCode.unsupportedSigVersion.rawValue)), error.followsClaims {
                    demands.note(scheme, of: origin)
                }
                guard seen.insert(error.code).inserted else { throw error }
                switch error.remedy {
                case .learnClock, .signAgain: break
                case .signOtherScheme: scheme = scheme == .one ? .two : .one
                case .assert where asserting != .never:
                    demands.note(error.assertionDemand, on: route.rawValue, at: origin)
                    isAssertionDemanded = true
                default: throw error
                }
                let offset = record.clockOffset
                record = try await ledger.loadOfAnyOrigin()
                // A copy that was delayed on its way is refused although the clock is right.
                let isLate = clock.continuous - start > ServiceClient.longestRoundTrip
                guard error.remedy == .learnClock, record.clockOffset == offset, !isLate else { continue }
                // The record has no new offset: there is nothing to learn, or the offset could not be stored. Store it once more, so
                // that the storage's error is thrown.
                guard let time = error.serverTime,
                    let learned = ClockOffset(
                        serverTime: time, receivedAt: clock.wallMilliseconds, roundTrip: .zero),
                    learned.isNews(comparedTo: offset)
                else { throw error.unlearnableClock }
                record = try await ledger.apply(.clockLearned(learned))
            }
        }
    }

    /// Sends a signed request with an assertion over the bytes that its signature covers. The request waits until all
    /// earlier requests with assertions have been answered.
    ///
    /// - Parameters:
    ///   - key: The attested key that makes the assertion; nil means the identity's App Attest key.
    ///   - waitLimit: How long the request waits for the earlier ones; nil if the caller limits its own wait.
    ///   - sign: Signs at the request's turn, so that its time is current. Throws if the request is no longer wanted.
    ///   - exchange: Sends the request.
    func sendAsserting<Answer: Sendable>(
        by key: IdentityRecord.AttestationKey? = nil, waitLimit: SerialTaskQueue.WaitLimit? = nil,
        _ sign: @escaping @Sendable () async throws(SynheartAuthError) -> SignedMessage,
        _ exchange: @escaping @Sendable (SignedMessage) async throws(SynheartAuthError) -> Answer
    ) async throws(SynheartAuthError) -> Answer {
        try await assertions.run(waitLimit) { () async throws(SynheartAuthError) in
            let signed = try await sign()
            let fields = signed.fields + [try await self.assertionField(over: signed, by: key)]
            return try await exchange(
                SignedMessage(fields: fields, bytes: signed.bytes, timestamp: signed.timestamp, key: signed.key))
        }
    }

    /// The header field with an assertion over the bytes that a request's signature covers.
    func assertionField(
        over signed: SignedMessage, by key: IdentityRecord.AttestationKey? = nil
    ) async throws(SynheartAuthError) -> (name: String, value: String) {
        let hash = Array(SHA256.hash(data: Data(signed.bytes)))
        return (HeaderName.assertion, Base64.standard.encode(try await assertion(clientDataHash: hash, by: key)))
    }

    /// Runs `body` with the current key. If the key is lost, checks whether another process has just replaced it; if not, marks
    /// it as lost in the record.
    func withCurrentKey<Value: Sendable>(
        _ body: (IdentityRecord, IdentityRecord.KeyReference) async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        var lost: IdentityRecord.KeyReference?
        while true {
            let record = lost == nil ? try await signingRecord() : try await ledger.load()
            let key = try record.signingKey()
            if let lost, lost == key {
                try await ledger.apply(.keyLost(lost))
                throw .keyLost
            }
            do throws(SynheartAuthError) {
                return try await body(record, key)
            } catch {
                guard error.code == .keyInvalidated else { throw error }
                lost = key
            }
        }
    }

    /// Raises the device's scheme floor after a request under this scheme, because the service raises it too.
    func noteScheme(_ scheme: SignatureScheme, _ record: IdentityRecord) async {
        guard scheme > record.schemeFloor, let now = try? await ledger.load(), now.deviceID == record.deviceID else {
            return
        }
        _ = try? await ledger.apply(.schemeUsed(scheme))
    }
}

extension SerialTaskQueue.WaitLimit {
    /// The longest time that one of the SDK's own requests waits for running requests with assertions, such as a long upload of the app. A
    /// rotation holds the operation lock while it waits. So it stops at the limit, releases the lock and is tried again.
    static func forAssertions(_ limit: Duration, _ sleeper: any Sleeper) -> Self {
        Self(
            limit: limit, sleeper: sleeper,
            failure: SynheartAuthError(
                .networkError, "the requests with assertions that were sent before have not been answered"))
    }
}

extension SynheartAuthError {
    /// The error if the current key is gone or can no longer sign.
    static var keyLost: SynheartAuthError {
        SynheartAuthError(.keyInvalidated, "the key is gone; registerDevice makes a new one")
    }

    /// The error that replaces this one if the clock is off by more than the SDK may learn.
    var unlearnableClock: SynheartAuthError {
        SynheartAuthError(
            .clockTooFarOff, "the device's clock is off, and by more than can be corrected", cause: self,
            serverTime: serverTime)
    }
}
