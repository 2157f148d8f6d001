internal import AuthContract
internal import StrictJSON

/// Decides commands from the device's record alone. Stores do not check these rules.
extension DeviceRecord {
    /// The change that a command makes; nil: the device is already as the command wants it.
    ///
    /// - Parameters:
    ///   - command: the command.
    ///   - app: the record of the device's app.
    ///   - now: the time of the change.
    ///   - actor: the actor in the audit log.
    /// - Throws: the reason why the command does not apply.
    func applying(
        _ command: DeviceCommand, under app: AppRecord, at now: UnixTime, by actor: String
    ) throws(DeviceConflict) -> DeviceChange? {
        var after = self
        guard let (code, detail) = try after.apply(command, under: app, at: now) else { return nil }
        let event = AuditEvent(code, at: now, actor: actor, appID: appID, deviceID: deviceID, detail: detail)
        return DeviceChange(from: self, to: after, event: event)
    }

    private mutating func apply(
        _ command: DeviceCommand, under app: AppRecord, at now: UnixTime
    ) throws(DeviceConflict) -> (AuditEvent.Code, JSONObject)? {
        switch command {
        case .rotate(let rotation): return try rotate(rotation, under: app, at: now)
        case .endOverlap(let key):
            guard key == self.key, previousKeyUntil != nil else { return nil }
            previousKeyUntil = nil
            return (.overlapEnded, JSONObject([("reason", .string(RotationReason.compromise.rawValue))]))
        case .deregister(let signer):
            guard try requireAlive() else { return nil }
            guard signer == key else {
                throw DeviceConflict(.invalidSignature, "signed by a key that is no longer the current one")
            }
            status = .deregistered
            return (.deviceDeregistered, JSONObject())

        case .proveAgain(let evidence, let proven, let wasSeen):
            guard proven == key else { throw DeviceConflict(.invalidAttestation, "the key was replaced meanwhile") }
            guard try requireAlive(), status != .rejected else {
                throw DeviceConflict(.invalidAttestation, "the device is \(status.rawValue)")
            }
            return join(evidence, under: app.keys, wasSeen: wasSeen, at: now)
        case .settleProof(let evidence):
            guard status == .pending else { return nil }
            let (joined, takesApp) = assurance.joined(with: evidence.assurance)
            (assurance, appAttest) = (joined, takesApp ? evidence.appAttest : appAttest)
            if takesApp { appVersion = evidence.appVersion ?? appVersion }
            return (.deviceEvidenceReplaced, Self.settled("verified"))
        case .admit:
            guard status(under: app.mode) == .pending else { return nil }
            (status, admittedUnderObservation) = (.registered, app.admission.isObserved)
            return (.deviceApproved, registrationDetail)
        case .refuseProof(let outcome):
            // A later proof of the device may have verified. Then this refusal changes nothing.
            guard status == .pending, assurance.isUnproven else { return nil }
            status = .rejected
            return (.deviceRejected, Self.settled(outcome))
        case .hold:
            guard status(under: app.mode) != status else { return nil }
            (status, admittedUnderObservation) = (.pending, false)
            return (.devicePending, registrationDetail)

        case .approve(let allowsUnproven):
            try requirePending(under: app.mode, "be approved")
            var detail = change(to: .registered, under: app.mode)
            if assurance.isUnproven {
                guard allowsUnproven else {
                    let reason =
                        "the proof of the device never verified; send unproven: true to approve it all the same"
                    throw DeviceConflict(.conflict, reason)
                }
                assurance = .approvedUnproven
                detail["unproven"] = true
            }
            (status, admittedUnderObservation) = (.registered, false)
            return (.deviceApproved, detail)
        case .reject:
            try requirePending(under: app.mode, "be rejected")
            let detail = change(to: .rejected, under: app.mode)
            (status, admittedUnderObservation) = (.rejected, false)
            return (.deviceRejected, detail)
        case .revoke(let reason):
            guard status != .revoked else { return nil }
            guard status != .deregistered else { throw .status(status, "be revoked") }
            var detail = change(to: .revoked, under: app.mode)
            status = .revoked
            if let reason { detail["reason"] = .string(reason) }
            return (.deviceRevoked, detail)
        case .demandRotation(let demand):
            try requireMayRotate("be made to rotate")
            let demand = try demand.joining(mustRotate, at: now)
            guard demand != mustRotate else { return nil }
            var detail = demand.detail
            detail["before"] = .object(mustRotate?.detail ?? JSONObject())
            mustRotate = demand
            return (.deviceMustRotate, detail)
        case .liftRotationDemand:
            try requireMayRotate("be relieved of a rotation")
            guard let demand = mustRotate else { return nil }
            mustRotate = nil
            return (.deviceRotationLifted, demand.detail)
        case .lowerScheme(let scheme):
            try requireMayRotate("sign under another scheme")
            guard scheme <= highestScheme else {
                throw DeviceConflict(
                    .conflict, "the device's floor is scheme \(highestScheme.rawValue): lower it, or leave it")
            }
            guard scheme < highestScheme else { return nil }
            let detail = JSONObject([("from", .integer(highestScheme.rawValue)), ("to", .integer(scheme.rawValue))])
            highestScheme = scheme
            return (.deviceSchemeLowered, detail)
        }
    }

    // MARK: Rotation

    private mutating func rotate(
        _ rotation: KeyRotation, under app: AppRecord, at now: UnixTime
    ) throws(DeviceConflict) -> (AuditEvent.Code, JSONObject) {
        let states = AccessTable.states(of: self, signedBy: .current, mode: app.mode, keys: app.keys, now: now)
        if case .refused(let code) = AccessTable.access(states, .rotateKey) {
            throw DeviceConflict(code, "a device in state \(states) may not rotate")
        }
        guard rotation.signedBy == key else {
            throw DeviceConflict(.rotationFailed, "another rotation was faster")
        }
        let isCompromised = isCompromised(under: app.keys, at: now)
        let newEvidence = rotation.reattestation?.evidence
        if newEvidence != nil { try requireMayRebind(rotation.reason, under: app.keys, at: now) }
        guard rotation.reattestation == nil || rotation.judgedAppAttestKey == appAttest?.keyID else {
            throw DeviceConflict(.rotationFailed, "the App Attest key was replaced meanwhile")
        }
        let detail = JSONObject([
            ("from", .string(key.thumbprint)), ("to", .string(rotation.newKey.thumbprint)),
            ("reason", .string(rotation.reason.rawValue)), (Reattestation.rebound, .bool(newEvidence != nil)),
        ])
        let overlap = isCompromised || rotation.reason == .compromise ? 0 : app.keys.overlapSeconds
        (previousKey, previousKeyUntil) = (key, overlap == 0 ? nil : now + overlap)
        (key, keyRotatedAt, mustRotate) = (rotation.newKey, now, nil)
        assurance.key = rotation.reattestation?.key ?? .rotated
        if let vouched = rotation.reattestation?.app {
            (assurance.app, assurance.labels) = (vouched.app, vouched.labels)
        }
        appVersion = rotation.reattestation?.appVersion ?? appVersion
        if let attested = rotation.reattestation?.attestation { assurance.addRootLabels(of: attested) }
        if rotation.reattestation != nil { assurance.labels.removeAll { $0 == Assurance.unprovenLabel } }
        if let newEvidence { appAttest = newEvidence }
        return (.keyRotated, detail)
    }

    /// Throws if the signing key may be compromised: then a rotation may not bring a new App Attest key. Otherwise a
    /// thief of the signing key could attest with another phone.
    func requireMayRebind(
        _ reason: RotationReason, under keys: KeyPolicy, at now: UnixTime
    ) throws(DeviceConflict) {
        guard reason != .compromise, !isCompromised(under: keys, at: now) else {
            throw DeviceConflict(.invalidAttestation, "a compromised key may not bring a new App Attest key")
        }
    }

    // MARK: Evidence

    /// The effect of an App Attest proof on a device that may already have an App Attest key.
    private enum Move {
        /// The proof or the device has no App Attest key, or the client may never have learned of its registration.
        case harmless
        /// A new App Attest key replaces one in use.
        case rebind
        /// The proof changes nothing.
        case refused
    }

    /// Combines a proof with the stored assurance, so that a weaker proof never replaces a stronger one.
    private mutating func join(
        _ evidence: VerifiedEvidence, under keys: KeyPolicy, wasSeen: Bool, at now: UnixTime
    ) -> (AuditEvent.Code, JSONObject)? {
        let move = move(to: evidence.appAttest, under: keys, wasSeen: wasSeen, at: now)
        guard move != .refused else { return nil }
        let detail = registrationDetail
        var (joined, takesApp) = assurance.joined(with: evidence.assurance)
        let isRebound = move == .rebind && takesApp
        if isRebound { joined = joined.rebound }
        let kept = takesApp ? evidence.appAttest : appAttest
        let version = takesApp ? evidence.appVersion ?? appVersion : appVersion
        guard kept != appAttest || joined != assurance || version != appVersion else { return nil }
        (assurance, appAttest, appVersion) = (joined, kept, version)
        return (
            .deviceEvidenceReplaced,
            JSONObject(members: detail.members + [.init(Reattestation.rebound, .bool(isRebound))])
        )
    }

    /// Decides whether the holder of the request key may present another App Attest key.
    ///
    /// Assertions exist because the request key alone is not enough: it may be in software, or stolen. So a registration
    /// must not allow a change that `rebind_on_rotation: false` and a compromise demand forbid on rotate-key. Otherwise a
    /// thief could register the stolen key again with another phone, and that phone's assertions would be accepted.
    ///
    /// A client that did not receive the answer to its registration also registers again with another App Attest key,
    /// because a key is attested only once. That client does not know its device id, so no request of the device has
    /// verified. Only a device without a verified request may change its App Attest key without the policy's permission,
    /// and only for `lostAnswerLife`.
    private func move(
        to attested: AppAttestKeyState?, under keys: KeyPolicy, wasSeen: Bool, at now: UnixTime
    ) -> Move {
        guard !isCompromised(under: keys, at: now) else { return .refused }
        guard let attested, let stored = appAttest else { return .harmless }
        // The same attested key keeps its counter. If the counter restarted at 0, old assertions would be accepted again.
        guard attested.keyID != stored.keyID else { return .refused }
        if mayLackItsAnswer(wasSeen: wasSeen, at: now) { return .harmless }
        return keys.rebindOnRotation ? .rebind : .refused
    }

    /// Whether the client may have lost the answer to its registration.
    ///
    /// `lastSeen` is stored up to half a minute after a request, and a killed node loses times that it has not stored. So the
    /// counter, the last rotation and the scheme are checked too: they are stored at once. `wasSeen` covers requests of the last
    /// half minute on this node, and requests whose time this node could not store.
    private func mayLackItsAnswer(wasSeen: Bool, at now: UnixTime) -> Bool {
        lastSeen == nil && !wasSeen && appAttest?.counter ?? 0 == 0 && keyRotatedAt == nil && highestScheme == .one
            && now - registeredAt <= Self.lostAnswerLife
    }

    /// Seconds after a registration in which a client that did not receive the answer may register again: a week, because
    /// a phone may be off for days.
    private static let lostAnswerLife: Int64 = 7 * 86_400

    // MARK: Status

    /// Returns false if the device has already deregistered itself. Throws if its status does not allow it to deregister.
    private func requireAlive() throws(DeviceConflict) -> Bool {
        guard status != .deregistered else { return false }
        if case .refused(let code) = AccessTable.access(AccessTable.State(status), .deregister) {
            throw DeviceConflict(code, "the device is \(status.rawValue)")
        }
        return true
    }

    private func requirePending(under mode: AppRecord.Mode, _ wanted: String) throws(DeviceConflict) {
        guard status(under: mode) == .pending else { throw .status(status, wanted) }
    }

    private func requireMayRotate(_ wanted: String) throws(DeviceConflict) {
        guard status == .registered || status == .pending else { throw .status(status, wanted) }
    }

    // MARK: Details of audit events

    /// The registration's detail for the audit log.
    var registrationDetail: JSONObject {
        JSONObject([
            ("platform", .string(platform.rawValue)), ("status", .string(status.rawValue)),
            ("key", .string(key.thumbprint)), ("assurance", .object(assurance.json)),
        ])
    }

    /// The effective status before a decision, and the status after it.
    private func change(to status: DeviceStatus, under mode: AppRecord.Mode) -> JSONObject {
        JSONObject([("from", .string(self.status(under: mode).rawValue)), ("to", .string(status.rawValue))])
    }

    private static func settled(_ outcome: String) -> JSONObject { JSONObject([("pending_proof", .string(outcome))]) }
}

extension RotationDemand {
    /// The demand in the detail of an audit event.
    fileprivate var detail: JSONObject {
        JSONObject([("by", .integer(by.seconds)), ("reason", .string(reason.rawValue))])
    }

    /// The demand that results from this one and the stored one. A second demand for compromise never gives a key more time.
    ///
    /// A scheduled demand replaces a scheduled one, and leaves one for compromise unchanged. A demand for compromise gets
    /// the earlier of the two times.
    fileprivate func joining(
        _ standing: RotationDemand?, at now: UnixTime
    ) throws(DeviceConflict) -> RotationDemand {
        guard let standing, standing != self else { return self }
        guard reason == .compromise else { return standing.reason == .compromise ? standing : self }
        guard standing.reason == .compromise || standing.by >= now || by <= standing.by else {
            // The scheduled demand is overdue, so the key may only rotate. A demand for compromise with the earlier, overdue time
            // would forbid even the rotation. With the later time, the key could sign other requests again.
            throw DeviceConflict(
                .conflict,
                """
                the device should have rotated by \(standing.by.seconds), and its key signs nothing but a rotation; end the key \
                with a time that is not later, or lift that demand first
                """)
        }
        return RotationDemand(by: min(by, standing.by), reason: .compromise)
    }
}
