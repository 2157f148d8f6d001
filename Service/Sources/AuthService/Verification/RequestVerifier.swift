@_spi(Service) internal import AuthContract
internal import StrictJSON

/// Judges signed requests: cheap checks first, replay late, fail closed. The order is that of the protocol (*Verifying a request*,
/// *Order*).
struct RequestVerifier: Sendable {
    let apps: AppRegistry
    let devices: DeviceDirectory
    let deviceStore: any DeviceStore
    let replay: any ReplayStore
    let audit: any AuditLog
    let protection: Protection
    let known: KnownDevices
    let clock: any ServiceClock
    /// The origins of the service's own routes; empty: scheme 2 works only at loopback.
    let ownOrigins: [RequestOrigin]
    let recorder: RefusalRecorder
    let seen: LastSeenBuffer

    /// Judges a request.
    ///
    /// - Parameter verification: identifies a call of `/verify` that its caller may repeat; nil for any other request.
    func judge(
        _ request: IncomingRequest, for operation: Operation, as verification: Verification? = nil
    ) async -> Judgement {
        let address = request.provenance.address
        var app: ProvisionedApp?
        var signed: VerifiedRequest?
        /// The device that the request names, and whether it exists.
        var claimed: (device: DeviceID, exists: Bool)?
        do throws(Refusal) {
            let headers = try wellFormed { try SignatureHeaders(request.headers) }
            // Decode the assertion here: a malformed one must be refused before the request makes its replay claims.
            let assertion = try wellFormed { try Self.assertion(in: request.headers) }
            // Allow only letters and -: a line break ends the method in the signed message, so none may be part of it.
            guard request.method.isMethod else {
                throw Refusal(malformed: ContractError("the method must be 1 to 32 letters or '-'"))
            }
            claimed = (headers.deviceID, false)
            // The addresses of another service's clients are not known here. That service limits their rate.
            if operation != .otherService {
                try protection.admitUnproven(
                    headers.deviceID, from: address, mayExist: known.mayExist(headers.deviceID))
            }
            let found = try await apps.enabled(headers.appID)
            app = found
            try await refuseDevelopmentHeader(request, of: found)
            let origins = headers.scheme == .one ? [] : try origins(of: request, app: found, operation)
            let now = clock.now
            let tag = verification.map { ClaimTag(of: $0, by: headers.deviceID) }
            var isFresh = true
            do throws(Refusal) { try requireFresh(headers.timestamp, now: now, found) } catch {
                // If the first call of a repeated `/verify` made its replay claims in time, repetitions are accepted for a minute.
                let age = now - headers.timestamp
                guard let tag, age >= 0, age <= found.record.signature.pastWindowSeconds + ClaimTag.life,
                    try await holds(tag, of: headers.deviceID, now: now)
                else { throw error }
                isFresh = false
            }
            guard let cached = try await devices.find(headers.deviceID, of: headers.appID) else {
                throw Refusal(.notRegistered, "no such device")
            }
            claimed?.exists = true
            // A deregistered device does not exist, so it is refused before the request's path and body are judged.
            guard cached.row.device.status != .deregistered else { throw Self.deregistered }
            let attempt = try SignedRequest(
                request, headers, of: found, for: operation, origin: origins.first, now: now)
            let judgement = try await neverRefuseByCachedRow(
                cached, attempt, orAt: origins.dropFirst(), from: operation == .otherService ? nil : address)
            signed = judgement.signed
            if judgement.refusal?.code == .misdirectedRequest {
                // A request at the wrong origin makes no replay claims, so it can be repeated. The device's rate limit bounds the copies.
                try await protection.admitDevice(attempt.deviceID)
            }
            var verified = try judgement.get()
            // Before anything changes: a refused body raises no scheme floor and no counter.
            guard operation == .otherService || request.bodyNames(headers.appID, headers.deviceID) else {
                // The request makes no replay claims, so it can be repeated. The device's rate limit bounds the copies.
                try await protection.admitDevice(headers.deviceID)
                throw Refusal(malformed: ContractError("app_id and device_id must equal the headers'"))
            }
            if isFresh {
                try await admitAndClaim(verified.request, tag)
            } else {
                try await protection.admitDevice(attempt.deviceID)
            }
            verified.missingAssertion = try await checkAssertion(assertion, verified, verification)
            signed = verified
            // A request to rotate-key may have the assertion in its body. `RotationRules` checks that.
            if verified.missingAssertion != nil, operation != .rotateKey {
                throw Refusal(.assertionRequired, "no assertion on \(attempt.path)")
            }
            if verified.scheme > verified.device.highestScheme { await raiseScheme(verified) }
            seen.record(verified.deviceID, at: verified.at)
            return .accepted(verified)
        } catch {
            if operation != .otherService, error.code.isCostly, let claimed {
                if claimed.exists {
                    await protection.countFailure(of: claimed.device, from: address)
                } else {
                    await protection.countStranger(claimed.device, from: address)
                }
            }
            if let app { await recorder.record(error.proof, .request, of: app, device: signed?.deviceID) }
            return .refused(error, app: app, signed: signed)
        }
    }

    /// A cached row never refuses a request. Re-read it first: another node may have approved the device or rotated its key.
    ///
    /// - Parameter address: the address for which the re-read is counted; nil: it is counted for the device alone.
    private func neverRefuseByCachedRow(
        _ cached: DeviceDirectory.Found, _ request: SignedRequest, orAt others: ArraySlice<RequestOrigin>,
        from address: ClientAddress?
    ) async throws(Refusal) -> Judgement {
        let judgement = try admit(request, orAt: others, cached.row)
        if judgement.refusal == nil { return judgement }
        if cached.isFresh { return try explained(judgement, request, cached.row) }
        guard protection.allowsReread(of: request.deviceID, from: address) else {
            throw Refusal(.rateLimited, "too many rows were re-read", retryAfter: 1)
        }
        guard let row = try await devices.readRow(request.deviceID, of: request.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        return try explained(try admit(request, orAt: others, row), request, row)
    }

    // MARK: Steps

    /// The app of a challenge or a registration. An unknown app is refused before the store is read, if the address sent too many
    /// unknown devices, unknown apps or wrong credentials.
    func enabledApp(_ id: AppID, for address: ClientAddress) async throws(Refusal) -> ProvisionedApp {
        if !apps.isKnown(id) { try protection.admitStranger(from: address) }
        do {
            return try await apps.enabled(id)
        } catch {
            if error.code.isCostly { await protection.countStranger(from: address) }
            throw error
        }
    }

    /// Refuses the development header of a request for a production app, whatever its value. Records security events within limits.
    func refuseDevelopmentHeader(_ request: IncomingRequest, of app: ProvisionedApp) async throws(Refusal) {
        guard app.record.buildChannel == .production,
            request.headers.contains(HeaderName.developmentMode)
        else { return }
        let address = request.provenance.address
        if let unrecorded = protection.securityEvent(app: app.record.appID, address: address) {
            let event = AuditEvent(
                .securityEvent, at: clock.now, actor: "service", appID: app.record.appID,
                detail: JSONObject([
                    ("event", "development_header_on_production"), ("address", .string(address.network)),
                    ("unrecorded_before", .integer(unrecorded.ofAddress)),
                    ("unrecorded_of_app_before", .integer(unrecorded.ofApp)),
                ]))
            try await storeCall { () async throws(StoreError) in try await audit.append(event) }
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

    /// Refuses a deregistered device. Then checks the signature, the device's status, the key's age, the assurance and the scheme
    /// floor.
    func admit(_ request: SignedRequest, _ row: DeviceRow) -> Judgement {
        guard row.device.status != .deregistered else { return .refused(Self.deregistered, app: request.app) }
        guard let role = signingKey(request, row) else {
            return .refused(Refusal(.invalidSignature, "neither key of the device verifies"), app: request.app)
        }
        let verified = VerifiedRequest(request: request, row: row, signedBy: role)
        do throws(Refusal) {
            try AccessTable.require(
                request.operation, of: row.device, signedBy: role, mode: request.app.record.mode,
                keys: request.app.record.keys, now: request.now)
            try requireTrusted(row.device, app: request.app)
            try requireFloor(request, row.device)
            return .accepted(verified)
        } catch { return .refused(error, app: request.app, signed: verified) }
    }

    private static let deregistered = Refusal(.notRegistered, "the device is deregistered")

    func signingKey(_ request: SignedRequest, _ row: DeviceRow) -> SigningKeyRole? {
        func verifies(_ key: DevicePublicKey, named name: @autoclosure () -> String) -> Bool {
            (request.keyID.map { $0 == name() } ?? true) && request.signature.isValid(for: request.message, by: key)
        }
        let device = row.device
        if verifies(device.key, named: row.thumbprint) { return .current }
        guard let previous = device.previousKey, let until = device.previousKeyUntil, request.now <= until,
            verifies(previous, named: previous.thumbprint)
        else { return nil }
        return .previous
    }

    /// Refuses a device whose assurance comes from a test authority or from development mode, if the app is on channel
    /// `production`. How the assurance was stored does not matter.
    private func requireTrusted(_ device: DeviceRecord, app: ProvisionedApp) throws(Refusal) {
        guard app.record.buildChannel == .production else { return }
        guard device.assurance.app != .test, device.assurance.app != .development else {
            throw Refusal(.deviceRevoked, "assurance \(device.assurance.app.rawValue) on channel production")
        }
    }

    /// Refuses a scheme below the app's minimum, or below the device's own floor, its highest verified scheme. The
    /// device's floor applies only if the client can use scheme 2; otherwise the device would be locked out.
    private func requireFloor(_ request: SignedRequest, _ device: DeviceRecord) throws(Refusal) {
        let minimum = request.app.record.signature.minimumScheme
        guard request.scheme >= minimum else { throw Self.belowFloor(minimum) }
        guard request.scheme >= device.highestScheme || !canUseSchemeTwo(request) else {
            throw Self.belowFloor(device.highestScheme)
        }
    }

    private static func belowFloor(_ floor: SignatureScheme) -> Refusal {
        Refusal(.unsupportedSigVersion, "below the floor, scheme \(floor.rawValue)")
    }

    /// Checks the device's rate limit and the app's quota of live replay claims, and makes the claims. If nodes share rate
    /// limits, the rate limit and the claims take one round trip to the store.
    private func admitAndClaim(_ request: SignedRequest, _ tag: ClaimTag?) async throws(Refusal) {
        guard request.needsClaims, let shared = protection.shared else {
            try await protection.admitDevice(request.deviceID)
            if request.needsClaims {
                try await claim(request) { (expiry, futureWindow) async throws(StoreError) in
                    try await replay.claim(
                        request.claims, of: request.deviceID, timestamp: request.timestamp, expiresAt: expiry,
                        now: request.now, futureWindow: futureWindow, tag: tag)
                }
            }
            return
        }
        var wait: Int64?
        try await claim(request) { (expiry, futureWindow) async throws(StoreError) in
            let outcome = try await shared.claim(
                request.claims, of: request.deviceID, at: protection.deviceRate, timestamp: request.timestamp,
                expiresAt: expiry, now: request.now, futureWindow: futureWindow, tag: tag)
            switch outcome {
            case .judged(let outcome): return outcome
            case .limited(let seconds):
                wait = seconds
                return nil
            }
        }
        try protection.admitDevice(after: wait)
    }

    /// Whether the verification with this tag made its claims within the last minute.
    private func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(Refusal) -> Bool {
        try await storeCall { () async throws(StoreError) in try await replay.holds(tag, of: device, now: now) }
    }

    /// Counts the request's replay claims in the app's quota of live claims, and makes the claims.
    ///
    /// - Parameter make: makes the claims with their expiry and the app's future window. It returns nil if it made none.
    private func claim(
        _ request: SignedRequest, _ make: (UnixTime, Int64) async throws(StoreError) -> ClaimOutcome?
    ) async throws(Refusal) {
        let expiry = request.timestamp + ReplayClaim.life
        try protection.admitClaims(request.claims.count, of: request.appID, until: expiry)
        var isClaimed = false
        defer { if !isClaimed { protection.giveBackClaims(request.claims.count, of: request.appID, until: expiry) } }
        let outcome: ClaimOutcome?
        do { outcome = try await make(expiry, request.app.claimWindow(at: request.timestamp)) } catch {
            throw Refusal(error)
        }
        switch outcome {
        case nil: return
        case .claimed: isClaimed = true
        case .taken: throw Refusal(.nonceReplay, "a claim was already taken")
        case .expired: throw Refusal(.clockSkew, "older than what the replay store still knows")
        case .historyLost(let retryAfter):
            throw Refusal(.serviceUnavailable, "the replay store has lost its history", retryAfter: retryAfter)
        }
    }

    /// Raises the device's scheme floor after its first request under a higher scheme. If the store fails, a later request does it.
    private func raiseScheme(_ verified: VerifiedRequest) async {
        _ = try? await deviceStore.raise(.scheme(verified.scheme), of: verified.deviceID, app: verified.appID)
        devices.forget(verified.deviceID)
    }
}
