internal import AuthContract
internal import StrictJSON

/// Registrations that arrived during an outage of their provider. They are kept sealed. Once the provider can be
/// reached, they are judged by the time of their arrival. After a day without a verdict they are rejected.
///
/// A rejected phone gives up its identity, so a clock that is ahead for a while must not cause a rejection. A proof
/// is rejected for its age only if every call of `settle()` for about an hour (`lastRounds` calls) found it more than
/// 23 hours old. The provider is still asked during that hour.
struct PendingProofs: Sendable {
    let store: any PendingProofStore
    let apps: AppRegistry
    let devices: DeviceDirectory
    let changes: DeviceChanges
    let key: ServiceKey
    let clock: any ServiceClock
    let recorder: RefusalRecorder
    private let replay: any ReplayStore
    private let backOff = PendingProofBackOff()

    init(
        store: any PendingProofStore, replay: any ReplayStore, apps: AppRegistry, devices: DeviceDirectory,
        changes: DeviceChanges, key: ServiceKey, clock: any ServiceClock, recorder: RefusalRecorder
    ) {
        self.store = store
        self.replay = replay
        self.apps = apps
        self.devices = devices
        self.changes = changes
        self.key = key
        self.clock = clock
        self.recorder = recorder
    }

    /// The time for which a proof is kept, in seconds.
    static let longestWait: Int64 = 86_400
    /// The number of `settle()` calls in an hour: `AuthService.run` makes one about every 30 seconds by default.
    static let lastRounds = 120
    private static let lastHour: Int64 = 3600
    /// The time after which a proof without a device must belong to a failed registration, in seconds.
    private static let registrationTime: Int64 = 60
    private static let page = 100

    func keep(_ request: RegisterRequest, for device: DeviceID) async throws(Refusal) {
        guard let sealed = try? key.seal(request.bytes, context: Self.context(device)) else {
            throw Refusal(.internalError, "a proof could not be sealed")
        }
        let proof = PendingProof(
            appID: request.appID, deviceID: device, arrivedAt: clock.now, sealedRequest: sealed)
        try await storeCall { () async throws(StoreError) in try await store.keep(proof) }
    }

    func erase(_ device: DeviceID) async throws(Refusal) {
        try await storeCall { () async throws(StoreError) in try await store.erasePendingProof(of: device) }
        backOff.forget(device)
    }

    /// Tries to settle every proof once.
    func settle() async {
        var last: DeviceID?
        // During an outage, one proof of each app is enough to notice the outage.
        var unreachableApps: Set<AppID> = []
        while !Task.isCancelled, let proofs = try? await store.pendingProofs(after: last, limit: Self.page),
            !proofs.isEmpty
        {
            for proof in proofs {
                last = proof.deviceID
                do {
                    try await settle(proof, isAway: unreachableApps.contains(proof.appID))
                } catch {
                    // A refusal with a proof is about this proof alone: the provider answered.
                    if error.code == .providerUnavailable {
                        if error.proof == nil { unreachableApps.insert(proof.appID) }
                    } else if error.untrustedRoot == nil {
                        continue
                    }
                    backOff.postpone(proof.deviceID, from: clock.now)
                }
            }
        }
    }

    private func settle(_ proof: PendingProof, isAway: Bool) async throws(Refusal) {
        let age = clock.now - proof.arrivedAt
        guard let device = try await devices.read(proof.deviceID, of: proof.appID) else {
            if age > Self.registrationTime { try await erase(proof.deviceID) }
            return
        }
        // If an operator has decided meanwhile, erase the proof.
        guard device.status == .pending else { return try await erase(proof.deviceID) }
        // Another proof of the device verified meanwhile. Or this proof verified in an earlier call of `settle()`, and a
        // later step of that call failed. Do not verify it again: a provider may refuse a proof that it has already judged.
        guard device.assurance.isUnproven else {
            do throws(Refusal) {
                _ = try await apps.enabled(proof.appID)
                return try await finish(device)
            } catch {
                guard error.code == .unknownApp, age > Self.longestWait else { throw error }
                return try await erase(proof.deviceID)
            }
        }
        let rounds = backOff.countRound(proof.deviceID, isLast: age > Self.longestWait - Self.lastHour)
        if age > Self.longestWait, rounds > Self.lastRounds {
            return try await reject(device, "not_settled_within_a_day")
        }
        guard !isAway, !backOff.isPostponed(proof.deviceID, at: clock.now) else { return }
        let app = try await apps.enabled(proof.appID)
        guard let input = try input(proof, device) else {
            return try await reject(device, "refused")
        }
        // A certificate chain alone can be judged several times.
        if input.proof != nil, try await !takeTurn(proof.deviceID) { return }
        let evidence: VerifiedEvidence
        do {
            evidence = try await app.verify(input)
        } catch {
            // Keep a proof under an untrusted root: another node, or this one after a reload, may trust the root.
            guard error.code == .invalidAttestation, error.untrustedRoot == nil else { throw error }
            await recorder.record(error.proof, .registration, of: app, device: device.deviceID)
            return try await reject(device, "refused")
        }
        try await accept(device, evidence, app: app)
    }

    /// Whether this node may ask about the proof now: no node has asked within the last minute. All nodes go through the same list, and
    /// Google empties the verdict of a token that it decodes a second time.
    private func takeTurn(_ device: DeviceID) async throws(Refusal) -> Bool {
        let now = clock.now
        let outcome = try await storeCall { () async throws(StoreError) in
            try await replay.claim(
                ReplayClaim.heldProof(of: device, at: now), of: device, timestamp: now, expiresAt: now + 120, now: now,
                futureWindow: 0)
        }
        return outcome == .claimed
    }

    /// The inputs of the proof's verification; nil if the sealed request cannot be read. Throws if it cannot be opened: another node
    /// may have sealed it with a key that this node does not have yet.
    private func input(_ proof: PendingProof, _ device: DeviceRecord) throws(Refusal) -> EvidenceInput? {
        guard let text = try? key.open(proof.sealedRequest, context: Self.context(proof.deviceID)) else {
            throw Refusal(.serviceUnavailable, "a pending proof cannot be opened")
        }
        guard let request = try? RegisterRequest(parsing: text, limits: .init(bytes: 1 << 20, depth: 16)) else {
            return nil
        }
        let nonce = BindingNonce(challenge: request.challenge, publicKeyText: request.publicKeyText)
        var input = EvidenceInput(request, key: device.key, nonce: nonce, at: proof.arrivedAt)
        input.isHeld = true
        return input
    }

    /// Saves the evidence first, then the status. If the second write fails, the next call of `settle()` repeats only this write.
    private func accept(
        _ device: DeviceRecord, _ evidence: VerifiedEvidence, app: ProvisionedApp
    ) async throws(Refusal) {
        let outcome = try await apply(.settleProof(evidence), device, app.record)
        if case .keyTaken? = outcome { return try await reject(device, "attested_key_taken") }
        try await finish(device)
    }

    /// Admits the device if the app's policy needs no approval, and erases its proof. The policy is read here, because it may have changed
    /// while the provider was asked.
    private func finish(_ device: DeviceRecord) async throws(Refusal) {
        let app = try await storeCall { () async throws(StoreError) in try await apps.record(device.appID) }
        if let app, app.admission.status == .registered { _ = try await apply(.admit, device, app) }
        try await erase(device.deviceID)
    }

    private func reject(_ device: DeviceRecord, _ outcome: String) async throws(Refusal) {
        let app = try await storeCall { () async throws(StoreError) in try await apps.record(device.appID) }
        // If an operator has already decided, that decision stays.
        if let app { _ = try await apply(.refuseProof(outcome: outcome), device, app) }
        try await erase(device.deviceID)
    }

    private func apply(
        _ command: DeviceCommand, _ device: DeviceRecord, _ app: AppRecord
    ) async throws(Refusal) -> DeviceChanges.Outcome? {
        try await changes.apply(command, to: device.deviceID, of: app, by: "service")
    }

    static func context(_ device: DeviceID) -> String { "synheart-auth/pending-proof/\(device.text)" }
}
