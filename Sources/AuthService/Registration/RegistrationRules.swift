internal import AuthContract
internal import StrictJSON

/// Admitting a device. The order of the steps is the contract's: the challenge is used up whatever happens next, a provider
/// is asked last, and the answer leaves only after the device is durable.
struct RegistrationRules: Sendable {
    let apps: AppRegistry
    let challenges: ChallengeRules
    let devices: DeviceDirectory
    let store: any DeviceStore
    let verifier: RequestVerifier
    let clock: any ServiceClock
    let random: any RandomSource

    func register(_ request: RegisterRequest, _ http: IncomingRequest) async throws(Refusal) -> RegisterResponse {
        let app = try await apps.enabled(request.appID)
        try await verifier.refuseDevelopmentHeader(http, of: app)
        try requirePlatform(request.platform, of: app)
        try await challenges.take(request.challenge, of: request.appID, for: .register)
        let key = try wellFormed { try DevicePublicKey(base64: request.publicKeyText) }
        let nonce = BindingNonce(challenge: request.challenge, publicKeyText: request.publicKeyText)
        try checkKeyProof(request, key, nonce, policy: app.record.keys)
        let evidence = try await judge(
            EvidenceInput(request: request, key: key, nonce: nonce, at: clock.now), app: app, http)
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

    /// Proof of possession: optional for clients that know only the seeds' protocol, but never wrong.
    private func checkKeyProof(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ nonce: BindingNonce, policy: KeyPolicy
    ) throws(Refusal) {
        guard let proof = request.keyProof else {
            guard policy.keyProof == .optional, request.proof != RegisterRequest.developmentProof else {
                throw Refusal(.invalidAttestation, "key_proof is required")
            }
            return
        }
        let signature = try wellFormed { try RequestSignature(der: proof) }
        guard signature.isValid(for: KeyProof.registration(nonce), by: key) else {
            throw Refusal(.invalidAttestation, "key_proof does not verify")
        }
    }

    private func judge(
        _ input: EvidenceInput, app: ProvisionedApp, _ http: IncomingRequest
    ) async throws(Refusal) -> VerifiedEvidence {
        if input.request.proof == RegisterRequest.developmentProof {
            try requireDevelopmentAllowed(app, http)
            return VerifiedEvidence(assurance: Assurance(app: .development, key: .unattested))
        }
        return try await app.verify(input)
    }

    /// A development proof needs all three: the allowance, the channel, and the header, which grants nothing by itself.
    private func requireDevelopmentAllowed(_ app: ProvisionedApp, _ http: IncomingRequest) throws(Refusal) {
        guard app.record.developmentIntegrityAllowed, app.record.buildChannel != .production,
            http.headers.values(HeaderName.developmentMode) == ["true"]
        else { throw Refusal(.devModeNotAllowed, "development proof without the allowance, the channel or the header") }
    }

    /// What policy makes of a proof that verified.
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
        let outcome = try await asking { () async throws(StoreError) in
            try await store.insert(
                device, maximumPending: app.record.registration.maximumPending,
                recording: event(status == .pending ? .devicePending : .deviceRegistered, device))
        }
        switch outcome {
        case .inserted:
            return RegisterResponse(deviceID: device.deviceID, status: status == .pending ? .pending : .registered)
        case .keyTaken(let binding): return try await again(request, key, evidence, binding, app: app)
        case .attestedKeyTaken: throw Refusal(.invalidAttestation, "the App Attest key is another device's")
        case .tooManyPending:
            throw Refusal(.rateLimited, "too many devices of the app are pending", retryAfter: 300)
        }
    }

    /// *The same key again*: looked up only after the proof verified, so that nobody learns from it who is registered.
    private func again(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, _ binding: KeyBinding,
        app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse {
        guard binding.role == .current, binding.appID == request.appID,
            let device = try await devices.read(binding.deviceID, of: binding.appID), device.key == key,
            device.platform == request.platform
        else { throw Refusal(.invalidAttestation, "the key is or was bound in another role") }
        switch device.status {
        case .registered:
            try await replaceEvidence(request, evidence, device)
            return RegisterResponse(deviceID: device.deviceID, status: .registered)
        case .pending:
            guard status(for: app).status == .registered else {
                return RegisterResponse(deviceID: device.deviceID, status: .pending)
            }
            return try await approve(device)
        case .rejected: return RegisterResponse(deviceID: device.deviceID, status: .rejected)
        case .revoked: throw Refusal(.deviceRevoked, "the key's device is revoked")
        case .deregistered: throw Refusal(.invalidAttestation, "the key's device deregistered")
        }
    }

    /// Only who holds the key may replace what is known of it.
    private func replaceEvidence(
        _ request: RegisterRequest, _ evidence: VerifiedEvidence, _ device: DeviceRecord
    ) async throws(Refusal) {
        guard request.keyProof != nil, evidence.appAttest?.keyID != device.appAttest?.keyID else { return }
        let replaced = try await asking { () async throws(StoreError) in
            try await store.replaceEvidence(
                device.deviceID, of: device.appID, key: device.key, evidence: evidence.appAttest,
                assurance: evidence.assurance, recording: event(.deviceEvidenceReplaced, device))
        }
        devices.forget(device.deviceID)
        guard replaced else { throw Refusal(.invalidAttestation, "the App Attest key is another device's") }
    }

    private func approve(_ device: DeviceRecord) async throws(Refusal) -> RegisterResponse {
        let approved = try await asking { () async throws(StoreError) in
            try await store.setStatus(
                device.deviceID, of: device.appID, from: [.pending], to: .registered,
                recording: event(.deviceApproved, device))
        }
        devices.forget(device.deviceID)
        // Somebody else decided first: the client asks again and learns what.
        return RegisterResponse(deviceID: device.deviceID, status: approved ? .registered : .pending)
    }

    private func event(_ code: AuditEvent.Code, _ device: DeviceRecord) -> AuditEvent {
        AuditEvent(
            code, at: clock.now, actor: "device", appID: device.appID, deviceID: device.deviceID,
            detail: JSONObject([
                ("platform", .string(device.platform.rawValue)), ("status", .string(device.status.rawValue)),
                ("key", .string(device.key.thumbprint)), ("assurance", .object(device.assurance.json)),
            ]))
    }
}
