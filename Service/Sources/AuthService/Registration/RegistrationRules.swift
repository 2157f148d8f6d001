internal import AuthContract

/// Admits devices. The steps are in the contract's order: the challenge is used up even if a later step refuses the
/// device, a provider is asked last, and the answer is sent only after the device is durably stored.
struct RegistrationRules: Sendable {
    let apps: AppRegistry
    let challenges: ChallengeRules
    let devices: DeviceDirectory
    let changes: DeviceChanges
    let store: any DeviceStore
    let verifier: RequestVerifier
    /// The proofs that wait for their provider. Nil: new devices are refused during an outage, whatever the app's policy is.
    let pendingProofs: PendingProofs?
    let recorder: RefusalRecorder
    /// The times of devices' last verified requests that this node has not stored yet.
    let seen: LastSeenBuffer
    let clock: any ServiceClock
    let random: any RandomSource

    /// - Returns: the answer, and the version of the app in the verified evidence.
    func register(
        _ request: RegisterRequest, _ http: IncomingRequest
    ) async throws(Refusal) -> (response: RegisterResponse, appVersion: String?) {
        var app = try await verifier.enabledApp(request.appID, for: http.provenance.address)
        try await verifier.refuseDevelopmentHeader(http, of: app)
        try requirePlatform(request.platform, of: app)
        try await challenges.take(request.challenge, of: request.appID, for: .register)
        let key = try wellFormed { try DevicePublicKey(base64: request.publicKeyText) }
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let judged = try await judge(request, http, key, under: app)
            if let response = judged.response { return (response, judged.appVersion) }
            // The app's record has changed. Judge again, because the new record's channel or policy may refuse a device that the
            // old record admits.
            apps.forget()
            app = try await apps.enabled(request.appID)
            try await verifier.refuseDevelopmentHeader(http, of: app)
            try requirePlatform(request.platform, of: app)
        }
        throw ConcurrentChanges(of: "the app's record").refusal
    }

    /// Judges a registration under an app's record.
    ///
    /// - Returns: the answer, which is nil if the stored record has changed, and the version of the app in the verified evidence.
    private func judge(
        _ request: RegisterRequest, _ http: IncomingRequest, _ key: DevicePublicKey, under app: ProvisionedApp
    ) async throws(Refusal) -> (response: RegisterResponse?, appVersion: String?) {
        let nonce = BindingNonce(challenge: request.challenge, publicKeyText: request.publicKeyText)
        let isDevelopment = request.proof == RegisterRequest.developmentProof
        if isDevelopment { try requireDevelopmentAllowed(app, http) }
        try checkKeyProof(request, key, nonce, policy: app.record.keys)
        if isDevelopment {
            guard request.platform == .android || request.keyAttestation == nil else {
                throw Refusal(.invalidAttestation, "a key attestation is Android's")
            }
            let unattested = VerifiedEvidence(assurance: Assurance(app: .development, key: .unattested))
            return (try await admit(request, key, unattested, app: app), nil)
        }
        let evidence: VerifiedEvidence
        do {
            evidence = try await app.verify(EvidenceInput(request, key: key, nonce: nonce, at: clock.now))
        } catch {
            await recorder.record(error.proof, .registration, of: app)
            guard error.code == .providerUnavailable else { throw error }
            return (try await duringOutage(request, key, app: app, outage: error), nil)
        }
        await recorder.record(evidence.refusedReceipt, .registration, of: app)
        return (try await admit(request, key, evidence, app: app), evidence.appVersion)
    }

    // MARK: Steps

    private func requirePlatform(_ platform: Platform, of app: ProvisionedApp) throws(Refusal) {
        let configured =
            switch platform {
            case .ios: app.record.ios != nil
            case .android: app.record.android != nil
            }
        guard configured else { throw ProvisionedApp.withoutPlatform(.invalidAttestation, platform) }
    }

    /// Checks the proof of possession. A request may omit it unless the policy or a development proof requires it. A wrong
    /// proof is always refused.
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

    /// A development proof needs `development_integrity_allowed`, a channel other than production, and the header
    /// `HeaderName.developmentMode`.
    private func requireDevelopmentAllowed(_ app: ProvisionedApp, _ http: IncomingRequest) throws(Refusal) {
        guard app.record.developmentIntegrityAllowed, app.record.buildChannel != .production else {
            throw Refusal(
                setUp: .devModeNotAllowed,
                "a development proof, and development_integrity_allowed is \(app.record.developmentIntegrityAllowed), build_channel \(app.record.buildChannel.rawValue)"
            )
        }
        guard http.headers.values(HeaderName.developmentMode) == ["true"] else {
            throw Refusal(.devModeNotAllowed, "development proof without the header")
        }
    }

    private func admit(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse? {
        let (status, isObserved) = app.record.admission
        let device = DeviceRecord(
            appID: request.appID, deviceID: DeviceID(from: random), platform: request.platform, status: status,
            key: key, assurance: evidence.assurance, appVersion: evidence.appVersion, appAttest: evidence.appAttest,
            registeredAt: clock.now, admittedUnderObservation: isObserved, localID: request.deviceLocalID)
        switch try await insert(device, app: app) {
        case .inserted:
            return RegisterResponse(deviceID: device.deviceID, status: status == .pending ? .pending : .registered)
        case .keyTaken(let binding): return try await sameKeyAgain(request, key, evidence, binding, app: app)
        case .attestedKeyTaken: throw Refusal(.invalidAttestation, "the App Attest key is another device's")
        case .tooManyPending: throw Self.tooManyPending
        case .appChanged: return nil
        }
    }

    /// Answers a registration whose proof passed every local check, but whose provider cannot be reached.
    ///
    /// The proof is not verified, so only the holder of the key is registered as pending, or learns that the key is already
    /// pending.
    private func duringOutage(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse? {
        guard request.keyProof != nil else { throw outage }
        let binding = try await storeCall { () async throws(StoreError) in try await store.binding(of: key.thumbprint) }
        if let binding { return try await pendingAlready(request, key, binding, app: app, outage: outage) }
        guard app.record.registration.providerOutage == .pending, let pendingProofs else { throw outage }
        return try await holdAsPending(request, key, app: app, proofs: pendingProofs, outage: outage)
    }

    /// Admits a device as pending, and keeps its proof until its provider can be reached.
    private func holdAsPending(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, proofs: PendingProofs, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse? {
        let device = DeviceRecord(
            appID: request.appID, deviceID: DeviceID(from: random), platform: request.platform, status: .pending,
            key: key, assurance: .unproven, registeredAt: clock.now, localID: request.deviceLocalID)
        // Store the proof first: a device without its proof would stay pending forever.
        try await proofs.keep(request, for: device.deviceID)
        let outcome = try await insert(device, app: app)
        guard outcome != .inserted else { return RegisterResponse(deviceID: device.deviceID, status: .pending) }
        try await proofs.erase(device.deviceID)
        switch outcome {
        case .keyTaken(let binding): return try await pendingAlready(request, key, binding, app: app, outage: outage)
        case .tooManyPending: throw Self.tooManyPending
        case .appChanged: return nil
        case .inserted, .attestedKeyTaken: throw outage
        }
    }

    /// The answer to the holder of a pending device's key during an outage. Throws the outage if there is no such device.
    private func pendingAlready(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ binding: KeyBinding, app: ProvisionedApp, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        guard let known = try await current(binding, key, request), known.status(under: app.record.mode) == .pending
        else { throw outage }
        return RegisterResponse(deviceID: known.deviceID, status: .pending)
    }

    private static let tooManyPending = Refusal(
        .rateLimited, "too many devices of the app are pending", retryAfter: 300)

    private func insert(_ device: DeviceRecord, app: ProvisionedApp) async throws(Refusal) -> InsertOutcome {
        let policy = app.record.registration
        let event = AuditEvent(
            device.status == .pending ? .devicePending : .deviceRegistered, at: clock.now, actor: "device",
            appID: device.appID, deviceID: device.deviceID, detail: device.registrationDetail)
        let outcome = try await storeCall { () async throws(StoreError) in
            try await store.insert(
                device, under: app.stored,
                maximumPending: device.assurance == .unproven ? policy.maximumUnproven : policy.maximumPending,
                recording: event)
        }
        if outcome == .inserted { verifier.known.insert(device.deviceID) }
        return outcome
    }

    /// The device of this app and platform whose current key is `key`; nil: there is none.
    private func current(
        _ binding: KeyBinding, _ key: DevicePublicKey, _ request: RegisterRequest
    ) async throws(Refusal) -> DeviceRecord? {
        guard binding.role == .current, binding.appID == request.appID,
            let device = try await devices.read(binding.deviceID, of: binding.appID), device.key == key,
            device.platform == request.platform
        else { return nil }
        return device
    }

    /// Answers a registration of a key that is already known (*The same key again* of the contract).
    ///
    /// The key is looked up only after the proof verified. So a client without a valid proof does not learn whether the key is
    /// registered.
    private func sameKeyAgain(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, _ binding: KeyBinding,
        app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse {
        guard let device = try await current(binding, key, request) else {
            throw Refusal(.invalidAttestation, "the key is or was bound in another role")
        }
        switch device.status(under: app.record.mode) {
        case .registered:
            // Only the holder of the key may replace its evidence.
            let proven = request.keyProof == nil ? device : try await prove(evidence, device, app: app)
            let isHeld = proven.status(under: app.record.mode) == .pending
            return RegisterResponse(deviceID: device.deviceID, status: isHeld ? .pending : .registered)
        case .pending:
            let proven = request.keyProof == nil ? device : try await prove(evidence, device, app: app)
            guard !proven.assurance.isUnproven else {
                return RegisterResponse(deviceID: device.deviceID, status: .pending)
            }
            if device.assurance.isUnproven { try await pendingProofs?.erase(device.deviceID) }
            guard app.record.admission.status == .registered else {
                return RegisterResponse(deviceID: device.deviceID, status: .pending)
            }
            return try await approve(proven, app: app)
        case .rejected: return RegisterResponse(deviceID: device.deviceID, status: .rejected)
        case .revoked: throw Refusal(.deviceRevoked, "the key's device is revoked")
        case .deregistered: throw Refusal(.invalidAttestation, "the key's device deregistered")
        }
    }

    /// Joins a proof with the stored evidence, and returns the resulting device.
    private func prove(
        _ evidence: VerifiedEvidence, _ device: DeviceRecord, app: ProvisionedApp
    ) async throws(Refusal) -> DeviceRecord {
        let command = DeviceCommand.proveAgain(
            evidence, of: device.key, wasSeen: seen.mayContain(device.deviceID))
        let outcome = try await changes.apply(
            command, to: device.deviceID, of: app.record, by: "device", from: device)
        guard case .done(let proven, _)? = outcome else {
            throw Refusal(.invalidAttestation, "the App Attest key is another device's")
        }
        return proven
    }

    private func approve(_ device: DeviceRecord, app: ProvisionedApp) async throws(Refusal) -> RegisterResponse {
        let outcome = try await changes.apply(.admit, to: device.deviceID, of: app.record, by: "device", from: device)
        // Another change may have decided first. The client learns the result when it asks for its status.
        guard case .done(let admitted, _)? = outcome, admitted.status == .registered else {
            return RegisterResponse(deviceID: device.deviceID, status: .pending)
        }
        return RegisterResponse(deviceID: device.deviceID, status: .registered)
    }
}
