internal import AuthContract
internal import Bytes

/// Replaces the key. The caller holds the operation lock. Meanwhile requests are signed with the old key.
///
/// A copy of a sent rotation may arrive late. So the pending key stays the same until the service has answered. A rotation drops
/// the pending key only if no copy can be accepted any more: each copy was refused, or the service still names the old key after
/// all copies have become too old.
struct Rotator: Sendable {
    let context: IdentityContext

    /// The seconds for which the service may accept a copy of the rotation request: ten minutes after the copy's
    /// timestamp, and five more for clock differences.
    static let lifeOfACopy: Int64 = 15 * 60

    /// Makes one attempt. Afterwards the identity is in `registered`, or in `keyInvalid` if its key is lost, unless the record
    /// cannot be written.
    func attempt(_ goal: RotationGoal) async throws(SynheartAuthError) -> KeyRotation {
        let record = try await prepare()
        do throws(SynheartAuthError) {
            return try await rotate(goal, record)
        } catch {
            context.log.event(.rotationFailed, .warning, device: record.deviceID, error: error)
            throw error
        }
    }

    private func rotate(_ goal: RotationGoal, _ record: IdentityRecord) async throws(SynheartAuthError) -> KeyRotation {
        var record = record
        if case .rotation(let leftover) = record.journal, leftover.isRefused || leftover.hasOpenRebind {
            // After `ROTATION_FAILED`, or if a copy with a new App Attest key may take effect, ask the service which key is current.
            if let rotation = try await settle(leftover, record) {
                // The status that settled it shows whether the service still demands a rotation.
                let demand = try await context.ledger.load().rotationDemand
                if goal.isDemanded && demand == nil || leftover.covers(goal) { return rotation }
            }
            record = try await prepare()
        }
        let key = try record.signingKey()
        context.log.event(.rotationStarted, device: record.deviceID)
        record = try await context.ledger.apply(
            .rotationStarted(.other(than: key.alias, of: context.appID), goal.isDemanded ? .scheduled : goal.reason))
        do throws(SynheartAuthError) {
            return try await confirm(at: try await exchange(record, rebinds: goal.rebinds))
        } catch {
            return try await resolve(error)
        }
    }

    /// Deletes a key that an earlier rotation replaced. No network.
    func disposeLeftover() async throws(SynheartAuthError) {
        guard case .disposal(let alias) = try await context.ledger.load().journal else { return }
        try await context.deleteKey(alias)
        try await context.ledger.apply(.keyDisposed)
    }

    private func prepare() async throws(SynheartAuthError) -> IdentityRecord {
        try await disposeLeftover()
        let record = try await context.ledger.load()
        _ = try record.signingKey()
        return record
    }

    /// Sends the rotation, and sends it again with evidence if the service demands evidence. A rotation that rebinds is sent with
    /// evidence at once.
    private func exchange(_ record: IdentityRecord, rebinds: Bool) async throws(SynheartAuthError) -> UnixTime {
        guard let deviceID = record.deviceID else { throw SynheartAuthError(.notRegistered, "no device id") }
        let evidence = RotationEvidenceStep(context: context)
        try await evidence.forgetRefusedHandle()
        if !rebinds {
            let newKey = try await makeKey(for: deviceID, challenge: nil)
            do throws(SynheartAuthError) {
                return try await send(newKey, deviceID, record)
            } catch {
                guard [.attestRotation, .assert, .rebind].contains(error.remedy) else { throw error }
            }
        }
        let challenge = try await context.challenge(for: .rotate)
        let isChainNeeded = context.configuration.keyStore.attestsKeys
        if isChainNeeded { try await forgetKey() }
        let newKey = try await makeKey(for: deviceID, challenge: isChainNeeded ? challenge.bytes : nil)
        // The assertion in the body has a counter that must arrive in order, so the rotation waits for the running requests with
        // assertions.
        let waitLimit = SerialTaskQueue.WaitLimit.forAssertions(.seconds(30), context.sleeper)
        return try await context.assertions.run(waitLimit) { () async throws(SynheartAuthError) in
            try await send(newKey, deviceID, record, try await evidence.make(for: newKey.publicKey, challenge))
        }
    }

    func pending() async throws(SynheartAuthError) -> PendingRotation {
        guard case .rotation(let pending) = try await context.ledger.load().journal else {
            throw Self.failed("no rotation is under way")
        }
        return pending
    }

    /// Drops the pending key, because it is lost or its hardware attestation cannot name a new challenge.
    ///
    /// - Throws: If a copy of its rotation may still take effect.
    func forgetKey() async throws(SynheartAuthError) {
        let pending = try await pending()
        guard pending.thumbprint != nil else { return }
        guard pending.lastCopy == nil else {
            throw Self.failed("an earlier copy of the rotation may still take effect")
        }
        try await context.ledger.apply(.rotationKeyForgotten)
    }

    private func send(
        _ newKey: NewKey, _ deviceID: DeviceID, _ record: IdentityRecord, _ evidence: RotationEvidence? = nil
    ) async throws(SynheartAuthError) -> UnixTime {
        let pending = try await pending()
        let current = try record.signingKey()
        let request = RotateKeyRequest(
            appID: context.appID, deviceID: deviceID, newPublicKeyText: newKey.publicKey.base64,
            reason: try await context.ledger.load().reason(of: pending), newKeyProof: newKey.proof.der,
            challenge: evidence?.challenge, assertion: evidence?.assertion, proof: evidence?.proof,
            keyAttestation: evidence?.keyAttestation)
        let copies = Locked(0)
        do throws(SynheartAuthError) {
            let answer = try await context.signedCall(
                .rotateKey, body: request.bytes, record: record, alias: current.alias,
                // Evidence in the body replaces the assertion.
                asserting: evidence == nil && record.attestationKey?.isUsed == true ? .asDemanded : .never,
                beforeSending: { timestamp throws(SynheartAuthError) in
                    copies.withLock { $0 += 1 }
                    try await context.ledger.apply(
                        .rotationSending(
                            thumbprint: newKey.publicKey.thumbprint, timestamp: timestamp,
                            usesHandle: evidence?.usesNewHandle == true))
                })
            return try answer.read(RotateKeyResponse.self).effectiveAt
        } catch {
            if error.code == .clockSkew, let time = error.serverTime {
                try await context.ledger.apply(.rotationCopiesSent(before: time))
            }
            // The service recorded the only copy against replay before it refused the copy. So the copy cannot take effect later.
            if pending.lastCopy == nil, copies.withLock({ $0 }) == 1, error.followsClaims {
                try await context.ledger.apply(.rotationCopiesRefused)
            }
            guard evidence?.usesNewHandle == true, error.code == .attestationFailed else { throw error }
            throw .rebindRefused(cause: error)
        }
    }

    private func confirm(at time: UnixTime, keepsDemand: Bool = false) async throws(SynheartAuthError) -> KeyRotation {
        let record = try await context.ledger.apply(.rotationConfirmed(at: time, keepsDemand: keepsDemand))
        // The rotation has taken effect. The old key is deleted now or by the next call.
        try? await disposeLeftover()
        context.log.event(.rotationFinished, device: record.deviceID)
        return KeyRotation(deviceId: record.deviceID?.text ?? "", effectiveAt: time)
    }

    /// Ends a failed attempt. Returns the rotation if it took effect after all. Otherwise throws, and the old key stays
    /// active unless it is lost. The pending key is kept while a copy of the request may still reach the service.
    private func resolve(_ error: SynheartAuthError) async throws(SynheartAuthError) -> KeyRotation {
        let record = try await context.ledger.load()
        guard case .rotation(let pending) = record.journal, record.identity == .active else { throw error }
        switch error.code {
        case .rotationFailed, .keyInvalidated, .server(ErrorCode.invalidSignature.rawValue):
            // The service may no longer accept the current key. Ask it which key is current.
            if pending.lastCopy != nil {
                if let rotation = try await settle(pending, record) { return rotation }
            } else if error.code == .keyInvalidated, let key = record.key {
                // The new key has signed, so the lost key is the current one.
                throw try await losing(key)
            }
        default: break
        }
        try await suspend(isRefused: error.code == .rotationFailed)
        guard error.remedy == .rotate else { throw error }
        throw SynheartAuthError(.keyTooOldToRotate, error.message, cause: error, serverTime: error.serverTime)
    }

    /// Marks the current key as lost. Returns the error to throw.
    func losing(_ key: IdentityRecord.KeyReference) async throws(SynheartAuthError) -> SynheartAuthError {
        try await context.ledger.apply(.keyLost(key))
        return .keyLost
    }

    /// Asks the service which key is current. If it is the new one, confirms the rotation. If it is the old one and no copy can
    /// arrive, abandons the pending key and returns nil. Otherwise throws `ROTATION_FAILED`: a copy may still arrive, or the
    /// current key is neither of the two, because another party rotated.
    private func settle(
        _ pending: PendingRotation, _ record: IdentityRecord
    ) async throws(SynheartAuthError) -> KeyRotation? {
        let current: CurrentKey?
        do throws(SynheartAuthError) {
            current = try await currentKey(pending, record)
        } catch {
            try await suspend(isRefused: pending.isRefused)
            throw error
        }
        let state = try await context.ledger.load().state
        switch current?.thumbprint {
        case let named? where named == pending.thumbprint:
            if state == .registered { try await context.ledger.apply(.rotationStarted(pending.alias, pending.reason)) }
            return try await confirm(
                at: current?.rotatedAt ?? current?.serverTime ?? UnixTime(0), keepsDemand: current?.mustRotate == true)
        case let named? where named == record.key?.thumbprint:
            try await giveUpIfNoCopyCanArrive(
                pending, serverTime: current?.serverTime, overlap: current?.overlap ?? 0, state)
            return nil
        default:
            try await suspend(isRefused: true)
            let error = SynheartAuthError(.noKeyAccepted, "the service has another key than this device's")
            context.log.event(.foreignKey, .error, device: record.deviceID, error: error)
            throw error
        }
    }

    private func giveUpIfNoCopyCanArrive(
        _ pending: PendingRotation, serverTime: UnixTime?, overlap: Int64, _ state: IdentityState
    ) async throws(SynheartAuthError) {
        var lastCopy = pending.lastCopy
        if let serverTime, let timestamp = lastCopy, timestamp > serverTime {
            try await context.ledger.apply(.rotationCopiesSent(before: serverTime))
            lastCopy = serverTime
        }
        // If no sent copy may still take effect, there is nothing to wait for. Without the service's time, assume that
        // one may.
        let remaining: Int64 =
            if let lastCopy {
                serverTime.map { (lastCopy + Self.lifeOfACopy + overlap) - $0 } ?? 1
            } else {
                -1
            }
        guard remaining < 0 else {
            try await suspend(isRefused: true)
            throw SynheartAuthError(
                .rotationFailed, "the service kept the old key", retryAfter: .seconds(min(remaining + 1, 3600)))
        }
        if state == .registered { try await context.ledger.apply(.rotationStarted(pending.alias, pending.reason)) }
        try await context.ledger.apply(.rotationAbandoned)
        try await disposeLeftover()
    }

    private func suspend(isRefused: Bool) async throws(SynheartAuthError) {
        guard try await context.ledger.load().state == .registering else { return }
        try await context.ledger.apply(.rotationSuspended(isRefused: isRefused))
    }

    private static func failed(_ message: String) -> SynheartAuthError { SynheartAuthError(.rotationFailed, message) }
}

extension PendingRotation {
    /// Whether this rotation reaches the goal.
    fileprivate func covers(_ goal: RotationGoal) -> Bool {
        RotationGoal(reason: reason, rebinds: newHandle?.isUsed == true).covers(goal)
    }
}

extension SynheartAuthError {
    /// Whether the service gives this refusal of a signed request only after it has accepted the signature, and has recorded the
    /// request against replay. If the same copy arrives again, the service refuses it as a replay.
    var followsClaims: Bool {
        switch code {
        case .server(ErrorCode.attestationRequired.rawValue), .server(ErrorCode.assertionRequired.rawValue),
            .attestationFailed:
            true
        default: false
        }
    }
}
