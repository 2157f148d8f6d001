internal import AuthContract
internal import Bytes

/// What every operation on one identity needs. A class, because every signature passes it along.
final class IdentityContext: Sendable {
    let appID: AppID
    let recordName: RecordName
    let configuration: SynheartAuth.Configuration
    let ledger: IdentityLedger
    let log: IdentityLog
    let service: ServiceClient
    let quickSigner = Locked<QuickSigner?>(nil)

    var clock: any DeviceClock { configuration.clock }
    var sleeper: any Sleeper { configuration.sleeper }
    var random: any RandomSource { configuration.random }
    var attestation: any AttestationProvider { configuration.attestation }

    init(appID: AppID, configuration: SynheartAuth.Configuration, changes: StateChanges) {
        self.appID = appID
        recordName = RecordName(appID)
        self.configuration = configuration
        log = IdentityLog(appID: appID, logger: configuration.logger)
        ledger = IdentityLedger(
            appID: appID, authOrigin: configuration.origin.text, storage: configuration.storage,
            calls: configuration.storageCalls, sleeper: configuration.sleeper, log: log, changes: changes)
        service = ServiceClient(
            origin: configuration.origin, transport: configuration.transport, clock: configuration.clock,
            sleeper: configuration.sleeper, isDevelopment: configuration.isDevelopment)
    }

    /// Makes one call of the key store, outside Swift's thread pool.
    func keys<Value: Sendable>(
        _ call: BlockingCall, _ body: @escaping @Sendable (any KeyStore) throws(KeyStoreError) -> Value
    ) async throws(KeyStoreError) -> Value {
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

    /// Throws while a change of the key store is abandoned: the resulting key is unknown.
    func checkKeyStore() throws(SynheartAuthError) {
        if configuration.keyCalls.hasChangeLeftBehind { throw error(Self.noAnswer) }
    }

    func error(_ error: KeyStoreError) -> SynheartAuthError { .keyStore(error, configuration.keyStore.protection) }

    /// The key under this alias, if it is the referenced one.
    func publicKey(_ reference: IdentityRecord.KeyReference) async throws(SynheartAuthError) -> DevicePublicKey? {
        do throws(KeyStoreError) {
            let key = try await keys(.loadKey) { store throws(KeyStoreError) in try store.load(reference.alias) }
            return key?.thumbprint == reference.thumbprint ? key : nil
        } catch {
            if error.isKeyLost { return nil }
            throw self.error(error)
        }
    }

    /// Deletes a key, best effort. If the hardware refuses, the alias is abandoned.
    ///
    /// - Throws: If the key store does not answer: a late deletion must not hit a new key of the same name.
    func deleteKey(_ alias: KeyAlias) async throws(SynheartAuthError) {
        try? await keys(.deleteKey) { store throws(KeyStoreError) in try store.delete(alias) }
        try checkKeyStore()
    }

    /// Calls the service, and learns its clock from the answer, best effort.
    func call(
        _ route: Route, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        deadline: Duration = .seconds(30)
    ) async throws(SynheartAuthError) -> ServiceClient.Response {
        let outcome = await service.exchange(route, headers: headers, body: body, deadline: deadline)
        if let offset = outcome.offset { await learn(offset) }
        if let time = outcome.mustRotateBy { _ = try? await ledger.apply(.rotationDemanded(by: time)) }
        return try outcome.result.get()
    }

    private func learn(_ offset: ClockOffset) async {
        guard let record = try? await ledger.load(), offset.isNews(comparedTo: record.clockOffset) else { return }
        _ = try? await ledger.apply(.clockLearned(offset))
    }

    /// Sends a signed request of the SDK's own. Signs again once for each refusal that ``RetryTable`` answers by signing again.
    func signedCall(
        _ route: Route, body: [UInt8] = [], record: IdentityRecord, alias: KeyAlias, deadline: Duration = .seconds(30),
        beforeSending: (UnixTime) async throws(SynheartAuthError) -> Void = { _ in }
    ) async throws(SynheartAuthError) -> ServiceClient.Response {
        var record = record
        var seen: Set<SynheartAuthError.Code> = []
        // Every service accepts scheme 1 from a device that has not used scheme 2, and scheme 2 only if it knows its own origin.
        var scheme = SignatureScheme.one
        while true {
            let signer = RequestSigner(context: self)
            let signed = try await signer.sign(scheme, route, body: body, record: record, alias: alias)
            try await beforeSending(signed.timestamp)
            do throws(SynheartAuthError) {
                return try await call(route, headers: signed.fields, body: body, deadline: deadline)
            } catch {
                guard [.learnClock, .signAgain, .signSchemeTwo].contains(error.remedy),
                    seen.insert(error.code).inserted
                else { throw error }
                if error.remedy == .signSchemeTwo { scheme = .two }
                let offset = record.clockOffset
                record = try await ledger.loadOfAnyOrigin()
                if error.remedy == .learnClock, record.clockOffset == offset { throw error.unlearnableClock }
            }
        }
    }
}

extension SynheartAuthError {
    /// The same error for a clock that is further off than the SDK may learn.
    var unlearnableClock: SynheartAuthError {
        SynheartAuthError(
            .clockTooFarOff, "the device's clock is off, and by more than can be corrected", cause: self,
            serverTime: serverTime)
    }
}
