internal import AuthContract
internal import StrictJSON

/// Admits devices. The steps stand in the contract's order: the challenge is used up whatever happens next, a provider is
/// asked last, and the answer leaves only after the device is durable.
struct RegistrationRules: Sendable {
    let apps: AppRegistry
    let challenges: ChallengeRules
    let devices: DeviceDirectory
    let store: any DeviceStore
    let verifier: RequestVerifier
    /// Nil: registrations are refused during an outage of a provider, whatever policy says.
    let pendingProofs: PendingProofs?
    let recorder: EvidenceRecorder
    /// The devices whose requests this node verified and has not written down yet.
    let seen: SeenDevices
    let clock: any ServiceClock
    let random: any RandomSource

    func register(_ request: RegisterRequest, _ http: IncomingRequest) async throws(Refusal) -> RegisterResponse {
        let app = try await verifier.enabledApp(request.appID, for: http.provenance.address)
        try await verifier.refuseDevelopmentHeader(http, of: app)
        try requirePlatform(request.platform, of: app)
        try await challenges.take(request.challenge, of: request.appID, for: .register)
        let key = try wellFormed { try DevicePublicKey(base64: request.publicKeyText) }
        let nonce = BindingNonce(challenge: request.challenge, publicKeyText: request.publicKeyText)
        let isDevelopment = request.proof == RegisterRequest.developmentProof
        if isDevelopment { try requireDevelopmentAllowed(app, http) }
        try checkKeyProof(request, key, nonce, policy: app.record.keys)
        if isDevelopment {
            return try await admit(
                request, key, VerifiedEvidence(assurance: Assurance(app: .development, key: .unattested)), app: app)
        }
        let evidence: VerifiedEvidence
        do {
            evidence = try await app.verify(EvidenceInput(request, key: key, nonce: nonce, at: clock.now))
        } catch {
            await recorder.record(error.proof, .registration, of: app)
            guard error.refusal.code == .providerUnavailable else { throw error.refusal }
            return try await duringOutage(request, key, app: app, outage: error.refusal)
        }
        await recorder.record(evidence.refusedReceipt, .registration, of: app)
        return try await admit(request, key, evidence, app: app)
    }

    // MARK: Steps

    private func requirePlatform(_ platform: Platform, of app: ProvisionedApp) throws(Refusal) {
        let configured =
            switch platform {
            case .ios: app.record.ios != nil
            case .android: app.record.android != nil
            }
        guard configured else { throw Refusal(.invalidAttestation, "\(platform.rawValue) is not configured") }
    }

    /// Proof of possession. Clients that know only the seeds' protocol send none. A wrong proof is always refused.
    private func checkKeyProof(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ nonce: BindingNonce, policy: KeyPolicy
    ) throws(Refusal) {
        guard let proof = request.keyProof else {
            guard policy.keyProof == .optional, request.proof != RegisterRequest.developmentProof else {
                throw Refusal(.invalidAttestation, "key_proof is required")
            }
            return
        }
        guard (try? RequestSignature(der: proof))?.isValid(for: KeyProof.registration(nonce), by: key) == true else {
            throw Refusal(.invalidAttestation, "key_proof does not verify")
        }
    }

    /// A development proof needs the allowance, the channel and the header. None of them grants anything alone.
    private func requireDevelopmentAllowed(_ app: ProvisionedApp, _ http: IncomingRequest) throws(Refusal) {
        guard app.record.developmentIntegrityAllowed, app.record.buildChannel != .production,
            http.headers.values(HeaderName.developmentMode) == ["true"]
        else { throw Refusal(.devModeNotAllowed, "development proof without the allowance, the channel or the header") }
    }

    /// The status that policy gives to a device whose proof verified.
    private func status(for app: ProvisionedApp) -> (status: DeviceStatus, underObservation: Bool) {
        guard app.record.registration.approval == .manual else { return (.registered, false) }
        return app.record.mode == .observe ? (.registered, true) : (.pending, false)
    }

    private func admit(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse {
        let (status, underObservation) = status(for: app)
        let device = DeviceRecord(
            appID: request.appID, deviceID: DeviceID(from: random), platform: request.platform, status: status,
            key: key, assurance: evidence.assurance, appAttest: evidence.appAttest, registeredAt: clock.now,
            admittedUnderObservation: underObservation, localID: request.deviceLocalID)
        switch try await insert(device, app: app) {
        case .inserted:
            let isPending = underObservation ? try await held(device).status == .pending : status == .pending
            return RegisterResponse(deviceID: device.deviceID, status: isPending ? .pending : .registered)
        case .keyTaken(let binding): return try await sameKeyAgain(request, key, evidence, binding, app: app)
        case .attestedKeyTaken: throw Refusal(.invalidAttestation, "the App Attest key is another device's")
        case .tooManyPending: throw Self.tooManyPending
        case .appMissing: throw appMissing(request.appID)
        }
    }

    /// A registration whose proof passed every local check while its provider cannot be reached. The proof is not verified,
    /// so only the holder of the key is held as pending, or learns that the key is already pending.
    private func duringOutage(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        guard request.keyProof != nil else { throw outage }
        let binding = try await storeCall { () async throws(StoreError) in try await store.binding(of: key.thumbprint) }
        if let binding { return try await pendingAlready(request, key, binding, outage: outage) }
        guard app.record.registration.providerOutage == .pending, let pendingProofs else { throw outage }
        return try await holdAsPending(request, key, app: app, proofs: pendingProofs, outage: outage)
    }

    /// Admits a device as pending, and keeps its proof until its provider can be reached.
    private func holdAsPending(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, proofs: PendingProofs, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        let device = DeviceRecord(
            appID: request.appID, deviceID: DeviceID(from: random), platform: request.platform, status: .pending,
            key: key, assurance: .unproven, registeredAt: clock.now, localID: request.deviceLocalID)
        // The proof first: a device without its proof would stay pending forever.
        try await proofs.keep(request, for: device.deviceID)
        let outcome = try await insert(device, app: app)
        guard outcome != .inserted else { return RegisterResponse(deviceID: device.deviceID, status: .pending) }
        try await proofs.erase(device.deviceID)
        switch outcome {
        case .keyTaken(let binding): return try await pendingAlready(request, key, binding, outage: outage)
        case .tooManyPending: throw Self.tooManyPending
        case .appMissing: throw appMissing(request.appID)
        case .inserted, .attestedKeyTaken: throw outage
        }
    }

    /// The answer to the holder of a bound key during an outage.
    private func pendingAlready(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ binding: KeyBinding, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        guard let known = try await current(binding, key, request), known.status == .pending else { throw outage }
        return RegisterResponse(deviceID: known.deviceID, status: .pending)
    }

    /// The device as it is once the app's mode counts: a row that only observation admitted is held, if the app enforces
    /// by now. Reading the record after the row was written closes the race with the switch: one of the two sees the other.
    private func held(_ device: DeviceRecord) async throws(Refusal) -> DeviceRecord {
        try await storeCall { () async throws(StoreError) in
            try await apps.makeObservedPending(of: device.appID, actor: "service")
        }
        return try await devices.read(device.deviceID, of: device.appID) ?? device
    }

    private static let tooManyPending = Refusal(
        .rateLimited, "too many devices of the app are pending", retryAfter: 300)

    /// The app was removed while the registration was judged.
    private func appMissing(_ app: AppID) -> Refusal {
        apps.forget()
        return Refusal(.unknownApp, "\(app) was removed meanwhile")
    }

    private func insert(_ device: DeviceRecord, app: ProvisionedApp) async throws(Refusal) -> InsertOutcome {
        let policy = app.record.registration
        return try await storeCall { () async throws(StoreError) in
            try await store.insert(
                device,
                maximumPending: device.assurance == .unproven ? policy.maximumUnproven : policy.maximumPending,
                recording: event(device.status == .pending ? .devicePending : .deviceRegistered, device))
        }
    }

    /// The device of this app and platform that has this current key.
    private func current(
        _ binding: KeyBinding, _ key: DevicePublicKey, _ request: RegisterRequest
    ) async throws(Refusal) -> DeviceRecord? {
        guard binding.role == .current, binding.appID == request.appID,
            let device = try await devices.read(binding.deviceID, of: binding.appID), device.key == key,
            device.platform == request.platform
        else { return nil }
        return device
    }

    /// *The same key again*. The key is looked up only after the proof verified, so that the answer reveals no registration.
    private func sameKeyAgain(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, _ binding: KeyBinding,
        app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse {
        guard var device = try await current(binding, key, request) else {
            throw Refusal(.invalidAttestation, "the key is or was bound in another role")
        }
        if device.status(under: app.record.mode) != device.status { device = try await held(device) }
        switch device.status {
        case .registered:
            // Only the holder of the key may replace its evidence.
            if request.keyProof != nil { _ = try await replaceEvidence(evidence, device, app: app) }
            return RegisterResponse(deviceID: device.deviceID, status: .registered)
        case .pending:
            let proven =
                request.keyProof == nil
                ? device.assurance : try await replaceEvidence(evidence, device, app: app)
            guard !proven.isUnproven else { return RegisterResponse(deviceID: device.deviceID, status: .pending) }
            if device.assurance.isUnproven { try await pendingProofs?.erase(device.deviceID) }
            // A pending device cannot be marked as admitted under observation, so observation does not admit it.
            let (status, underObservation) = status(for: app)
            guard status == .registered, !underObservation else {
                return RegisterResponse(deviceID: device.deviceID, status: .pending)
            }
            return try await approve(device)
        case .rejected: return RegisterResponse(deviceID: device.deviceID, status: .rejected)
        case .revoked: throw Refusal(.deviceRevoked, "the key's device is revoked")
        case .deregistered: throw Refusal(.invalidAttestation, "the key's device deregistered")
        }
    }

    /// Joins a proof with the stored evidence, and returns the resulting assurance. If another change was faster, the proof is
    /// joined with that one, so that a weaker proof never overwrites a stronger one.
    private func replaceEvidence(
        _ evidence: VerifiedEvidence, _ device: DeviceRecord, app: ProvisionedApp
    ) async throws(Refusal) -> Assurance {
        var device = device
        for _ in 0..<Self.maximumAttempts {
            let move = move(of: device, to: evidence.appAttest, under: app.record.keys)
            guard move != .refused else { return device.assurance }
            var (assurance, takesApp) = device.assurance.joined(with: evidence.assurance)
            let isRebound = move == .rebind && takesApp
            if isRebound { assurance = assurance.rebound }
            let (known, joined) = (device, assurance)
            let kept = takesApp ? evidence.appAttest : device.appAttest
            guard kept != device.appAttest || joined != device.assurance else { return device.assurance }
            let event = event(.deviceEvidenceReplaced, known, ("rebound", .bool(isRebound)))
            let replaced = try await storeCall { () async throws(StoreError) in
                try await store.replaceEvidence(of: known, with: kept, assurance: joined, recording: event)
            }
            devices.forget(device.deviceID)
            if replaced { return joined }
            guard let now = try await devices.read(device.deviceID, of: device.appID), now.key == device.key,
                now != device
            else {
                throw Refusal(.invalidAttestation, "the App Attest key is another device's, or the key was replaced")
            }
            device = now
        }
        throw Refusal(.serviceUnavailable, "the evidence changed each time that it was read", retryAfter: 1)
    }

    /// What a proof by an App Attest key means for a device that has one, or none yet.
    private enum Move {
        /// The App Attest key stays the same, or the device has never used the stored one.
        case harmless
        /// Another App Attest key replaces one that is in use.
        case rebind
        /// The proof changes nothing.
        case refused
    }

    /// Judges whether the holder of the request key may bring another App Attest key.
    ///
    /// Assertions exist because the request key alone is not enough: it may be in software, or stolen. So a registration must
    /// not allow what `rebind_on_rotation: false` and a demand of compromise forbid on rotate-key. Otherwise a thief could
    /// register the stolen key again with another phone, and that phone's assertions would count.
    ///
    /// A client that lost its first answer also has another App Attest key, because a key is attested only once. It does not
    /// know its device id, so no request of this device has verified. Only such a row may change its App Attest key without
    /// the policy's permission, and only for `lostAnswerLife`. There is no identity to steal yet.
    private func move(of device: DeviceRecord, to attested: AppAttestEvidence?, under keys: KeyPolicy) -> Move {
        guard !device.isCompromised(under: keys, at: clock.now) else { return .refused }
        guard let attested, let stored = device.appAttest else { return .harmless }
        // The same attested key keeps its counter. With 0, old assertions would be accepted again.
        guard attested.keyID != stored.keyID else { return .refused }
        if mayLackItsAnswer(device) { return .harmless }
        return keys.rebindOnRotation ? .rebind : .refused
    }

    /// Whether the client may have lost the answer to its registration.
    ///
    /// `lastSeen` is stored half a minute after a request, and a killed node loses what it has not stored. The counter, the
    /// key's age and the scheme are stored at once. `seen` has what this node has not stored yet.
    private func mayLackItsAnswer(_ device: DeviceRecord) -> Bool {
        device.lastSeen == nil && !seen.contains(device.deviceID) && device.appAttest?.counter ?? 0 == 0
            && device.keyRotatedAt == nil && device.highestScheme == .one
            && clock.now - device.registeredAt <= Self.lostAnswerLife
    }

    /// Seconds after a registration in which a client that lost its answer may register again: a week, because a phone may be
    /// off for days.
    private static let lostAnswerLife: Int64 = 7 * 86_400

    private static let maximumAttempts = 8

    private func approve(_ device: DeviceRecord) async throws(Refusal) -> RegisterResponse {
        let approved = try await storeCall { () async throws(StoreError) in
            try await store.setStatus(
                device.deviceID, of: device.appID, from: [.pending], to: .registered,
                recording: event(.deviceApproved, device))
        }
        devices.forget(device.deviceID)
        // Another change decided first. The client asks again and learns the result.
        return RegisterResponse(deviceID: device.deviceID, status: approved ? .registered : .pending)
    }

    private func event(
        _ code: AuditEvent.Code, _ device: DeviceRecord, _ further: (String, JSONValue)...
    ) -> AuditEvent {
        AuditEvent(
            code, at: clock.now, actor: "device", appID: device.appID, deviceID: device.deviceID,
            detail: JSONObject(
                [
                    ("platform", .string(device.platform.rawValue)), ("status", .string(device.status.rawValue)),
                    ("key", .string(device.key.thumbprint)), ("assurance", .object(device.assurance.json)),
                ] + further))
    }
}
