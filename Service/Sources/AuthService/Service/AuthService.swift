public import AuthContract
public import StrictJSON

/// The rules of the auth service behind `/auth/v1/…`, without HTTP and without SQL.
public struct AuthService: Sendable {
    /// The provisioned apps.
    public let apps: AppRegistry
    /// The operations of operators on devices.
    public let administration: DeviceAdministration
    /// The operations of operators on recordings of refused proofs.
    public let recordings: RecordingAdministration
    /// Credentials of services and operators.
    public let credentials: CredentialRules
    /// The keys that sign device tokens.
    public let signingKeys: SigningKeys
    /// The content of the discovery documents; nil without a public origin.
    public let issuerMetadata: JSONObject?
    /// The receivers of audit events.
    public var webhooks: Webhooks
    /// Verification of the audit log, and its signed head.
    public var auditTrail: AuditTrail
    /// Counts of verdicts by time.
    public let history: VerdictHistory
    /// The clock of all decisions.
    public let clock: any ServiceClock

    private let providers: any EvidenceProviders
    let protection: Protection
    private let challenges: ChallengeRules
    let devices: DeviceDirectory
    let deviceStore: any DeviceStore
    let known: KnownDevices
    private let changes: DeviceChanges
    let verifier: RequestVerifier
    private let registration: RegistrationRules
    let pendingProofs: PendingProofs?
    let recorder: RefusalRecorder
    private let rotation: RotationRules
    private let tokens: TokenIssuer
    let versions: (any VersionStore)?
    let seen = LastSeenBuffer()
    let signIns = SignIns()

    /// A service over these stores.
    ///
    /// - Parameters:
    ///   - stores: the stores.
    ///   - key: seals secrets in the stores.
    ///   - publicOrigin: the origin at which clients reach the service, and the issuer of tokens. Scheme 2 signatures on the
    ///     service's own routes cover this origin or one of `otherOrigins`.
    ///   - otherOrigins: further origins at which clients reach the service, such as an old host name.
    ///   - providers: the services of Google.
    ///   - writer: writes the documents of refused proofs. Nil: no refusal is recorded.
    ///   - settings: rate limits and bounds.
    ///   - clock: the clock by which everything is judged.
    ///   - random: the source of challenges, ids and secrets.
    public init(
        stores: Stores, key: ServiceKey, publicOrigin: RequestOrigin? = nil, otherOrigins: [RequestOrigin] = [],
        providers: any EvidenceProviders = NoProviders(), recordings writer: (any RecordingWriter)? = nil,
        protection settings: ProtectionSettings = ProtectionSettings(),
        clock: any ServiceClock = SystemClock(), random: any RandomSource = SystemRandom()
    ) {
        self.clock = clock
        history = VerdictHistory(store: stores.history, clock: clock, random: random)
        apps = AppRegistry(
            store: stores.apps, devices: stores.devices, credentials: stores.credentials, key: key, clock: clock,
            providers: providers)
        self.providers = providers
        versions = stores.versions
        protection = Protection(settings, shared: stores.limits, clock: clock)
        challenges = ChallengeRules(store: stores.challenges, clock: clock, random: random)
        deviceStore = stores.devices
        known = KnownDevices(devices: stores.devices, audit: stores.audit, clock: clock)
        devices = DeviceDirectory(store: stores.devices, clock: clock, capacity: settings.cachedDevices)
        changes = DeviceChanges(store: stores.devices, directory: devices, clock: clock)
        recorder = RefusalRecorder(
            store: stores.recordings, writer: writer, key: key, clock: clock, random: random)
        verifier = RequestVerifier(
            apps: apps, devices: devices, deviceStore: stores.devices, replay: stores.replay, audit: stores.audit,
            protection: protection, known: known, clock: clock, ownOrigins: Self.origins(publicOrigin, otherOrigins),
            recorder: recorder, seen: seen)
        pendingProofs = stores.pendingProofs.map { [apps, devices, changes, recorder] proofs in
            PendingProofs(
                store: proofs, replay: stores.replay, apps: apps, devices: devices, changes: changes, key: key,
                clock: clock, recorder: recorder)
        }
        registration = RegistrationRules(
            apps: apps, challenges: challenges, devices: devices, changes: changes, store: stores.devices,
            verifier: verifier, pendingProofs: pendingProofs, recorder: recorder, seen: seen, clock: clock,
            random: random)
        rotation = RotationRules(
            devices: devices, changes: changes, store: stores.devices, challenges: challenges, protection: protection,
            recorder: recorder)
        signingKeys = SigningKeys(store: stores.signingKeys, key: key, clock: clock)
        auditTrail = AuditTrail(log: stores.audit, archives: stores.auditArchives, key: key, clock: clock)
        webhooks = Webhooks(store: stores.webhooks, audit: stores.audit, key: key, clock: clock, random: random)
        issuerMetadata = publicOrigin.map { IssuerMetadata.json(of: $0) }
        tokens = TokenIssuer(
            keys: signingKeys, apps: apps, issuer: publicOrigin?.description ?? "synheart-auth", random: random)
        credentials = CredentialRules(
            store: stores.credentials, protection: protection, clock: clock, random: random)
        administration = DeviceAdministration(
            store: stores.devices, proofs: stores.pendingProofs, apps: apps, changes: changes)
        recordings = RecordingAdministration(store: stores.recordings, audit: stores.audit, key: key, clock: clock)
    }

    /// Hits and misses of the cache of devices.
    package var deviceCacheUse: CacheUse { devices.use }

    // MARK: The device API

    /// Counts a challenge or registration of an address, and refuses it if there were too many. Called before the body is read.
    public func admitEnrolment(from address: ClientAddress) async throws(Refusal) {
        try await protection.admitEnrolment(from: address)
    }

    /// Records, once an hour for each trusted proxy, that its requests name no client address. In that case its clients share one
    /// limit.
    ///
    /// - Returns: whether an event was due.
    package func recordUnnamed(_ address: ClientAddress) async -> Bool {
        guard protection.isEventDue(about: address) else { return false }
        let event = AuditEvent(
            .securityEvent, at: clock.now, actor: "service",
            detail: JSONObject([
                ("event", .string(Self.unnamedEvent)), ("address", .string(address.network)),
            ]))
        // The request is answered even if the event cannot be stored. The next event is due in an hour.
        try? await verifier.audit.append(event)
        return true
    }

    /// The event of a trusted proxy that names no client address.
    package static let unnamedEvent = "proxy_names_no_client"

    /// `POST /auth/v1/device/challenge`.
    public func issueChallenge(
        _ request: ChallengeRequest, _ http: IncomingRequest
    ) async throws(Refusal) -> ChallengeResponse {
        let app = try await verifier.enabledApp(request.appID, for: http.provenance.address)
        try await verifier.refuseDevelopmentHeader(http, of: app)
        return try await challenges.issue(request, source: http.provenance.address)
    }

    /// `POST /auth/v1/device/register`.
    public func register(
        _ request: RegisterRequest, _ http: IncomingRequest
    ) async throws(Refusal) -> RegisterResponse {
        try await registration.register(request, http).response
    }

    /// Registers a device like `register`, and returns the version of the app in the verified evidence too; nil: unknown or unverified.
    package func registered(
        _ request: RegisterRequest, _ http: IncomingRequest
    ) async throws(Refusal) -> (response: RegisterResponse, appVersion: String?) {
        try await registration.register(request, http)
    }

    /// Judges a signed request on one of the service's own routes.
    public func judge(_ request: IncomingRequest, for operation: Operation) async -> Judgement {
        await verifier.judge(request, for: operation)
    }

    /// Judges a signed request on one of the service's own routes, for callers that only need the accepted request.
    public func authenticate(
        _ request: IncomingRequest, for operation: Operation
    ) async throws(Refusal) -> VerifiedRequest {
        try await judge(request, for: operation).get()
    }

    /// `GET /auth/v1/device/status`. The answer names the current key, even if the request was judged by an older cached
    /// row.
    public func status(_ verified: VerifiedRequest) async throws(Refusal) -> StatusResponse {
        guard let row = try await devices.current(verified.row) else {
            throw Refusal(.notRegistered, "no such device")
        }
        let (device, mode, keys) = (row.device, verified.app.record.mode, verified.app.record.keys)
        let states = try AccessTable.require(
            .status, of: device, signedBy: .current, mode: mode, keys: keys, now: verified.at)
        // A key that is too old may still rotate during its grace period.
        let mustRotate =
            device.rotationDemand(under: keys, at: verified.at) != nil || states.age == .tooOldInGrace
        return StatusResponse(
            deviceID: device.deviceID, status: device.status(under: mode), platform: device.platform,
            registeredAt: device.registeredAt, keyRotatedAt: device.keyRotatedAt,
            keyAgeSeconds: max(0, verified.at - device.keySince), keyThumbprint: row.thumbprint,
            mustRotate: mustRotate, assurance: device.assurance, serverTimestamp: clock.now)
    }

    /// `POST /auth/v1/device/rotate-key`.
    public func rotateKey(
        _ request: RotateKeyRequest, _ verified: VerifiedRequest
    ) async throws(Refusal) -> RotateKeyResponse {
        try await rotation.rotate(verified, request)
    }

    /// `DELETE /auth/v1/device`. A tombstone stays, so that no other device can register the key.
    public func deregister(_ verified: VerifiedRequest) async throws(Refusal) {
        _ = try await changes.apply(
            .deregister(signedBy: verified.device.key), to: verified.deviceID, of: verified.app.record, by: "device")
    }

    /// `POST /auth/v1/token`.
    public func issueToken(_ request: TokenRequest, _ verified: VerifiedRequest) async throws(Refusal) -> TokenResponse
    {
        // A token outlives the request. So re-read the row: a key that was replaced on another node gets no token.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        guard device.key == verified.device.key else {
            throw Refusal(.invalidSignature, "signed by a key that is no longer the current one")
        }
        try AccessTable.require(
            .token, of: device, signedBy: .current, mode: verified.app.record.mode, keys: verified.app.record.keys,
            now: clock.now)
        return try await tokens.issue(request, for: device, of: verified.app.record, at: verified.at)
    }

    // MARK: Other services' requests

    /// `POST /auth/v1/verify`: judges a request that another service received.
    ///
    /// A request that does not name exactly one valid app is judged as a request of the credential's app, if the credential has
    /// exactly one. During a rollout under observation, the first requests come from clients that do not sign and name no app.
    ///
    /// - Throws: `FORBIDDEN` if the credential is not for the app, `INVALID_REQUEST` if `identity_audience` is not the app's, 503
    ///   if the audience cannot be checked or the token cannot be signed. None of them is a verdict on the request.
    public func verify(
        _ question: VerifyRequest, by credential: Credential, address: ClientAddress
    ) async throws(Refusal) -> Judgement {
        let appID: AppID
        do { appID = try credential.app(claimedIn: question.headers) } catch {
            return .refused(Refusal(malformed: error), app: nil)
        }
        try credential.requireQuestions(about: appID)
        // Checked before the request is judged, because an error in the question must not use up the claims of the request.
        if let audience = question.identityAudience { try await require(audience, of: appID) }
        let request: IncomingRequest
        do { request = try IncomingRequest(question, address: address) } catch {
            return await observing(.refused(Refusal(malformed: error), app: nil), appID)
        }
        let verification = question.verificationID.map { Verification(of: question, named: $0, by: credential.id) }
        var judgement = await verifier.judge(request, for: .otherService, as: verification)
        if let audience = question.identityAudience { judgement = try await identifying(judgement, for: audience) }
        return await observing(judgement, appID)
    }

    /// The judgement on a request that the listener refuses before it is judged, such as one whose body is too large: refused, or
    /// only reported if the app is in mode `observe`.
    package func judgement(
        refusing refusal: Refusal, of headers: HeaderFields, by credential: Credential
    ) async -> Judgement {
        let refused = Judgement.refused(refusal, app: nil)
        guard let appID = try? credential.app(claimedIn: headers) else { return refused }
        do { try credential.requireQuestions(about: appID) } catch { return refused }
        return await observing(refused, appID)
    }

    /// Refuses an `identity_audience` that is not one of the app's audiences.
    private func require(_ audience: String, of appID: AppID) async throws(Refusal) {
        guard let app = try await apps.provisioned(appID) else { return }
        try tokens.requireListed(audience, of: app.record)
    }

    /// Adds the requested identity token, if the request was accepted. If the token cannot be signed, this throws, and the caller
    /// gets no verdict.
    private func identifying(_ judgement: Judgement, for audience: String) async throws(Refusal) -> Judgement {
        guard case .success(let verified) = judgement.result else { return judgement }
        var judgement = judgement
        judgement.identityToken = try await tokens.identityToken(
            for: audience, of: verified.device, verified.app.record, at: verified.at)
        return judgement
    }

    /// Applies mode `observe`. A failure of the service (5xx) is not a verdict, so no mode changes it.
    private func observing(_ judgement: Judgement, _ appID: AppID) async -> Judgement {
        guard let refusal = judgement.refusal, refusal.code.httpStatus < 500 else { return judgement }
        var judgement = judgement
        do throws(Refusal) {
            // A malformed request is refused before its app is found.
            let app = if let found = judgement.app { found } else { try await apps.enabled(appID) }
            judgement.isObserved = app.record.mode == .observe
        } catch {
            if error.code == .serviceUnavailable { return .refused(error, app: nil) }
        }
        return judgement
    }

    // MARK: For operators

    /// The requests of this process to providers, and the state of its revocation lists.
    public func providerReport() async -> ProviderReport { await providers.report() }
}
