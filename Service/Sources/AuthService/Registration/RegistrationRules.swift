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
    /// Nil: an outage of a provider refuses, whatever policy says.
    let pendingProofs: PendingProofs?
    let recorder: EvidenceRecorder
    let clock: any ServiceClock
    let random: any RandomSource

    func register(_ request: RegisterRequest, _ http: IncomingRequest) async throws(Refusal) -> RegisterResponse {
        let app = try await verifier.enabledApp(request.appID, for: http.address)
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
            await recorder.note(error.proof, .registration, of: app)
            guard error.code == .providerUnavailable else { throw error }
            return try await duringOutage(request, key, app: app, outage: error)
        }
        await recorder.note(evidence.refusedReceipt, .registration, of: app)
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
        guard (try? RequestSignature(der: proof))?.isValid(for: KeyProof.registration(nonce), by: key) == true else {
            throw Refusal(.invalidAttestation, "key_proof does not verify")
        }
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
        switch try await insert(device, app: app) {
        case .inserted:
            return RegisterResponse(deviceID: device.deviceID, status: status == .pending ? .pending : .registered)
        case .keyTaken(let binding): return try await again(request, key, evidence, binding, app: app)
        case .attestedKeyTaken: throw Refusal(.invalidAttestation, "the App Attest key is another device's")
        case .tooManyPending: throw Self.tooManyPending
        case .appMissing: throw appMissing(request.appID)
        }
    }

    /// A registration whose proof passed every local check while its provider cannot be asked. Nothing of the proof has
    /// verified, so only the holder of the key is held, or learns that it waits already.
    private func duringOutage(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        guard request.keyProof != nil else { throw outage }
        let binding = try await asking { () async throws(StoreError) in try await store.binding(of: key.thumbprint) }
        if let binding { return try await waiting(request, key, binding, outage: outage) }
        guard app.record.registration.providerOutage == .pending, let pendingProofs else { throw outage }
        return try await hold(request, key, app: app, proofs: pendingProofs, outage: outage)
    }

    /// Admits a device as pending: its proof is kept until its provider can be asked.
    private func hold(
        _ request: RegisterRequest, _ key: DevicePublicKey, app: ProvisionedApp, proofs: PendingProofs, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        let device = DeviceRecord(
            appID: request.appID, deviceID: DeviceID(from: random), platform: request.platform, status: .pending,
            key: key, assurance: .unproven, registeredAt: clock.now, localID: request.deviceLocalID)
        // The proof first: a device without one would wait for ever.
        try await proofs.keep(request, for: device.deviceID)
        let outcome = try await insert(device, app: app)
        guard outcome != .inserted else { return RegisterResponse(deviceID: device.deviceID, status: .pending) }
        try await proofs.erase(device.deviceID)
        switch outcome {
        case .keyTaken(let binding): return try await waiting(request, key, binding, outage: outage)
        case .tooManyPending: throw Self.tooManyPending
        case .appMissing: throw appMissing(request.appID)
        case .inserted, .attestedKeyTaken: throw outage
        }
    }

    /// What the holder of a bound key is told during an outage.
    private func waiting(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ binding: KeyBinding, outage: Refusal
    ) async throws(Refusal) -> RegisterResponse {
        guard let known = try await current(binding, key, request), known.status == .pending else { throw outage }
        return RegisterResponse(deviceID: known.deviceID, status: .pending)
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
        return try await asking { () async throws(StoreError) in
            try await store.insert(
                device,
                maximumPending: device.assurance == .unproven ? policy.maximumUnproven : policy.maximumPending,
                recording: event(device.status == .pending ? .devicePending : .deviceRegistered, device))
        }
    }

    /// The device of this app and platform whose current key this is.
    private func current(
        _ binding: KeyBinding, _ key: DevicePublicKey, _ request: RegisterRequest
    ) async throws(Refusal) -> DeviceRecord? {
        guard binding.role == .current, binding.appID == request.appID,
            let device = try await devices.read(binding.deviceID, of: binding.appID), device.key == key,
            device.platform == request.platform
        else { return nil }
        return device
    }

    /// *The same key again*: looked up only after the proof verified, so that nobody learns from it who is registered.
    private func again(
        _ request: RegisterRequest, _ key: DevicePublicKey, _ evidence: VerifiedEvidence, _ binding: KeyBinding,
        app: ProvisionedApp
    ) async throws(Refusal) -> RegisterResponse {
        guard let device = try await current(binding, key, request) else {
            throw Refusal(.invalidAttestation, "the key is or was bound in another role")
        }
        switch device.status {
        case .registered:
            // Only who holds the key may replace what is known of it.
            if request.keyProof != nil { try await replaceEvidence(evidence, device) }
            return RegisterResponse(deviceID: device.deviceID, status: .registered)
        case .pending:
            if device.assurance.isUnproven { try await prove(evidence, device) }
            // An admission that only observation would grant is not granted to who waits already: it could not be marked.
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

    /// What was still to be proven when the provider could not be asked.
    private func prove(_ evidence: VerifiedEvidence, _ device: DeviceRecord) async throws(Refusal) {
        try await replaceEvidence(evidence, device)
        try await pendingProofs?.erase(device.deviceID)
    }

    /// Takes what a proof adds to what was proven of the key before. Another proof of the device may be faster: then it is
    /// judged anew beside that one, so that the weaker of two never overwrites the stronger.
    private func replaceEvidence(_ evidence: VerifiedEvidence, _ device: DeviceRecord) async throws(Refusal) {
        var device = device
        for _ in 0..<Self.maximumAttempts {
            // The same attested key keeps its counter: back at 0, assertions that were accepted once would be again.
            if let attested = evidence.appAttest, attested.keyID == device.appAttest?.keyID { return }
            let (assurance, takesApp) = device.assurance.joined(with: evidence.assurance)
            let (known, kept) = (device, takesApp ? evidence.appAttest : device.appAttest)
            guard kept != device.appAttest || assurance != device.assurance else { return }
            let replaced = try await asking { () async throws(StoreError) in
                try await store.replaceEvidence(
                    known.deviceID, of: known.appID, key: known.key, known: known.assurance,
                    evidence: kept, assurance: assurance, recording: event(.deviceEvidenceReplaced, known))
            }
            devices.forget(device.deviceID)
            if replaced { return }
            guard let now = try await devices.read(device.deviceID, of: device.appID), now.key == device.key,
                now.assurance != device.assurance
            else {
                throw Refusal(.invalidAttestation, "the App Attest key is another device's, or the key was replaced")
            }
            device = now
        }
        throw Refusal(.serviceUnavailable, "the evidence changed each time that it was read", retryAfter: 1)
    }

    private static let maximumAttempts = 8

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
