internal import AuthContract
internal import StrictJSON

/// Judges signed requests: cheap checks first, replay last, fail closed. The order is the contract's.
struct RequestVerifier: Sendable {
    let apps: AppRegistry
    let devices: DeviceDirectory
    let deviceStore: any DeviceStore
    let replay: any ReplayStore
    let audit: any AuditLog
    let protection: Protection
    let clock: any ServiceClock
    /// Where clients reach our own routes; nil: loopback alone.
    let publicOrigin: RequestOrigin?
    let recorder: EvidenceRecorder

    /// Seconds after its timestamp that a request's claims live, whatever the app's window is.
    static let claimLife: Int64 = 600 + 60

    /// A refusal, and what became known on the way to it: the caller of an observed app learns the identity, if the signature
    /// verified.
    struct Refused: Error {
        let refusal: Refusal
        let known: Known
    }

    struct Known: Sendable {
        var app: ProvisionedApp?
        var identified: VerifiedRequest?
    }

    /// Accepts a request or throws.
    func verify(_ request: IncomingRequest, for operation: Operation) async throws(Refusal) -> VerifiedRequest {
        do throws(Refused) {
            return try await judge(request, for: operation)
        } catch {
            var refusal = error.refusal
            refusal.rotationDemand = error.known.identified?.rotationDemand
            throw refusal
        }
    }

    /// Accepts a request, or says with the refusal what became known.
    func judge(_ request: IncomingRequest, for operation: Operation) async throws(Refused) -> VerifiedRequest {
        var known = Known()
        do throws(Refusal) {
            return try await judge(request, for: operation, &known)
        } catch {
            // An unknown id costs a read of the store, a wrong signature a verification.
            if [.invalidSignature, .notRegistered, .unknownApp].contains(error.code), operation != .foreign {
                protection.countFailure(from: request.address)
            }
            throw Refused(refusal: error, known: known)
        }
    }

    @inline(__always)  // As are the steps that may have to wait and hardly ever do: a call of such a one has its price.
    private func judge(
        _ request: IncomingRequest, for operation: Operation, _ known: inout Known
    ) async throws(Refusal) -> VerifiedRequest {
        let signed = try SignedRequest(request)
        // Another service's clients are not known by address: its own limits hold for them.
        if operation != .foreign { try protection.admitUnproven(from: request.address) }
        let app = try await apps.enabled(signed.appID)
        known.app = app
        try await refuseDevelopmentHeader(request, of: app)
        let now = clock.now
        try requireFresh(signed.timestamp, now: now, app)
        guard let found = try await devices.find(signed.deviceID, of: signed.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        let path = try signedPath(signed.target.path, of: app, operation)
        try requireQueryAllowed(signed, app)
        let attempt = Attempt(
            signed: signed,
            message: try signed.message(
                path: path, origin: signed.scheme == .one ? nil : try origin(of: request, app: app, operation)),
            app: app, operation: operation, canUseSchemeTwo: canUseSchemeTwo(request, operation), now: now)
        var verified: VerifiedRequest
        do {
            verified = try admit(attempt, found.row, &known)
        } catch {
            // A cached row never refuses a request. Re-read it first: another node may have approved the device or rotated
            // its key.
            guard !found.isFresh else { throw error }
            known.identified = nil
            guard protection.allowsReread(of: signed.deviceID, from: operation == .foreign ? nil : request.address)
            else { throw Refusal(.rateLimited, "too many rows read again", retryAfter: 1) }
            guard let row = try await devices.readRow(signed.deviceID, of: signed.appID) else {
                throw Refusal(.notRegistered, "no such device")
            }
            verified = try admit(attempt, row, &known)
        }
        do throws(Refusal) {
            try protection.admitDevice(signed.deviceID)
            try await claim(attempt)
            verified.owedAssertion = try await checkAssertion(request, verified, path: path, for: operation)
        } catch {
            known.identified = verified
            throw error
        }
        await raiseScheme(verified)
        return verified
    }

    private struct Attempt {
        let signed: SignedRequest
        let message: SignedMessage
        let app: ProvisionedApp
        let operation: Operation
        /// False on our own routes at an authority that is not loopback, while no public origin is configured.
        let canUseSchemeTwo: Bool
        let now: UnixTime
    }

    // MARK: Steps

    /// The app of a challenge or a registration. An address that named too many unknown ones is refused before the store is
    /// read for it.
    func enabledApp(_ id: AppID, for address: ClientAddress) async throws(Refusal) -> ProvisionedApp {
        if !apps.isKnown(id) { try protection.admitUnproven(from: address) }
        do {
            return try await apps.enabled(id)
        } catch {
            if error.code == .unknownApp { protection.countFailure(from: address) }
            throw error
        }
    }

    /// On a production app the development header is a security event, whatever its value.
    @inline(__always)
    func refuseDevelopmentHeader(_ request: IncomingRequest, of app: ProvisionedApp) async throws(Refusal) {
        guard app.record.buildChannel == .production,
            request.headers.contains(HeaderName.developmentMode)
        else { return }
        if let unrecorded = protection.securityEvent(app: app.record.appID, address: request.address) {
            let event = AuditEvent(
                .securityEvent, at: clock.now, actor: "service", appID: app.record.appID,
                detail: JSONObject([
                    ("event", "development_header_on_production"), ("address", .string(request.address.network)),
                    ("unrecorded_before", .integer(unrecorded.ofAddress)),
                    ("unrecorded_of_app_before", .integer(unrecorded.ofApp)),
                ]))
            try await asking { () async throws(StoreError) in try await audit.append(event) }
        }
        throw Refusal(.devModeNotAllowed, "development header on a production app")
    }

    private func requireFresh(_ timestamp: UnixTime, now: UnixTime, _ app: ProvisionedApp) throws(Refusal) {
        guard now - timestamp <= app.record.signature.pastWindowSeconds else {
            throw Refusal(.clockSkew, "dated \(now - timestamp) s ago")
        }
        guard timestamp - now <= app.record.signature.futureWindowSeconds else {
            throw Refusal(.clockSkew, "dated \(timestamp - now) s ahead")
        }
    }

    /// The path as the client signed it: without the prefix that the deployment strips.
    private func signedPath(
        _ path: RequestPath, of app: ProvisionedApp, _ operation: Operation
    ) throws(Refusal) -> RequestPath {
        guard operation == .foreign, let prefix = app.record.signature.pathPrefixStrip else { return path }
        guard path.isBelow(prefix) else {
            throw Refusal(.invalidRequest, "the path is not below path_prefix_strip")
        }
        let stripped = String(path.text.dropFirst(prefix.count))
        return try wellFormed { try RequestPath(stripped.isEmpty ? "/" : stripped) }
    }

    private func requireQueryAllowed(_ signed: SignedRequest, _ app: ProvisionedApp) throws(Refusal) {
        guard signed.scheme == .one, signed.target.query != nil else { return }
        switch app.record.signature.unsignedQuery {
        case .allow: return
        case .refuseOnWrites where signed.isRead: return
        case .refuseOnWrites, .refuse:
            let hint = "a query is not covered by signature scheme 1 and is refused here"
            throw Refusal(.invalidRequest, hint, hint: hint)
        }
    }

    /// Signature, then status, key age and scheme floor.
    private func admit(
        _ attempt: Attempt, _ row: DeviceRow, _ known: inout Known
    ) throws(Refusal) -> VerifiedRequest {
        let device = row.device
        guard device.status != .deregistered else { throw Refusal(.notRegistered, "the device is deregistered") }
        guard let role = signingKey(attempt, row) else {
            throw Refusal(.invalidSignature, "neither key of the device verifies")
        }
        let verified = VerifiedRequest(
            app: attempt.app, row: row, scheme: attempt.signed.scheme, signedBy: role, at: attempt.now,
            signedAt: attempt.signed.timestamp, message: attempt.message.bytes)
        do throws(Refusal) {
            try requireAccess(attempt, device, signedBy: role)
        } catch {
            known.identified = verified
            throw error
        }
        return verified
    }

    private func requireAccess(
        _ attempt: Attempt, _ device: DeviceRecord, signedBy role: SigningKeyRole
    ) throws(Refusal) {
        let states = AccessTable.states(of: device, signedBy: role, app: attempt.app.record, now: attempt.now)
        // Which rotation it is shows in the body, which the rule of rotation reads.
        if case .refused(let code) = AccessTable.access(states, attempt.operation) {
            throw Refusal(code, "a device in state \(states) may not \(attempt.operation.rawValue)")
        }
        try requireTrusted(device, app: attempt.app)
        // Where scheme 2 cannot be used, for want of an origin, the device's own floor would lock it out.
        let minimum = attempt.app.record.signature.minimumScheme
        let floor = attempt.canUseSchemeTwo ? max(minimum, device.highestScheme) : minimum
        guard attempt.signed.scheme >= floor else {
            throw Refusal(.unsupportedSigVersion, "below the floor, scheme \(floor.rawValue)")
        }
    }

    private func signingKey(_ attempt: Attempt, _ row: DeviceRow) -> SigningKeyRole? {
        func verifies(_ key: DevicePublicKey, named name: @autoclosure () -> String) -> Bool {
            (attempt.message.keyID.map { $0 == name() } ?? true)
                && attempt.signed.signature.isValid(for: attempt.message.bytes, by: key)
        }
        let device = row.device
        if verifies(device.key, named: row.thumbprint) { return .current }
        guard let previous = device.previousKey, let until = device.previousKeyUntil, attempt.now <= until,
            verifies(previous, named: previous.thumbprint)
        else { return nil }
        return .previous
    }

    /// Where the request was sent to, as far as the service or the app's operator vouches for it: never the Host header
    /// alone. Nil: scheme 2 is refused.
    private func origin(
        of request: IncomingRequest, app: ProvisionedApp, _ operation: Operation
    ) throws(Refusal) -> RequestOrigin? {
        guard operation == .foreign else {
            if let publicOrigin { return publicOrigin }
            let received = try wellFormed { try RequestOrigin(scheme: request.scheme, authority: request.authority) }
            return received.isLoopback ? received : nil
        }
        guard !app.authorities.isEmpty else { return nil }
        let received = try wellFormed { try RequestOrigin(scheme: request.scheme, authority: request.authority) }
        guard app.authorities.contains(received) else {
            throw Refusal(.invalidSignature, "sent to \(received), which is not one of the app's authorities")
        }
        return received
    }

    private func canUseSchemeTwo(_ request: IncomingRequest, _ operation: Operation) -> Bool {
        if operation == .foreign || publicOrigin != nil { return true }
        return (try? RequestOrigin(scheme: request.scheme, authority: request.authority))?.isLoopback ?? false
    }

    /// On production what a test kit or development mode vouched for never counts, however it got into the store.
    private func requireTrusted(_ device: DeviceRecord, app: ProvisionedApp) throws(Refusal) {
        guard app.record.buildChannel == .production else { return }
        guard device.assurance.app != .test, device.assurance.app != .development else {
            throw Refusal(.deviceRevoked, "assurance \(device.assurance.app.rawValue) on channel production")
        }
    }

    @inline(__always)
    private func claim(_ attempt: Attempt) async throws(Refusal) {
        let signed = attempt.signed
        guard attempt.app.record.signature.replayOnReads || !signed.isRead else { return }
        let (claims, expiry) = (attempt.message.claims, signed.timestamp + Self.claimLife)
        try protection.admitClaims(claims.count, of: signed.appID, until: expiry)
        var isClaimed = false
        defer { if !isClaimed { protection.giveBackClaims(claims.count, of: signed.appID, until: expiry) } }
        let outcome = try await asking { () async throws(StoreError) in
            try await replay.claim(
                claims, timestamp: signed.timestamp, expiresAt: expiry, now: attempt.now,
                futureWindow: attempt.app.record.signature.futureWindowSeconds)
        }
        switch outcome {
        case .claimed: isClaimed = true
        case .taken: throw Refusal(.nonceReplay, "a claim was already taken")
        case .expired: throw Refusal(.clockSkew, "older than what the replay store still knows")
        case .historyLost(let retryAfter):
            throw Refusal(.serviceUnavailable, "the replay store has lost its history", retryAfter: retryAfter)
        }
    }

    /// A device that has shown that it can do better is not let back; losing this note only postpones it.
    @inline(__always)
    private func raiseScheme(_ verified: VerifiedRequest) async {
        guard verified.scheme > verified.device.highestScheme else { return }
        try? await deviceStore.raiseScheme(
            verified.deviceID, of: verified.appID, to: verified.scheme)
        devices.forget(verified.deviceID)
    }
}
