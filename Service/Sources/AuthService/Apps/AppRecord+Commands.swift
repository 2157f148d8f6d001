internal import AuthContract
internal import StrictJSON

/// The other apps' data for a decision about one app.
struct OtherApps: Sendable {
    var ids: [AppID] = []
    /// The other apps' records; empty unless the app is new. Records that cannot be decrypted are left out, because a damaged
    /// record must not block changes to the other apps.
    var records: [AppRecord] = []
}

extension String {
    fileprivate var isAudience: Bool {
        guard let first = unicodeScalars.first, let last = unicodeScalars.last else { return false }
        return ![first, last].contains(where: \.properties.isWhitespace)
            && unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}

extension AppRecord {
    /// The status of a device whose proof verified, and whether it is registered only because the app observes.
    var admission: (status: DeviceStatus, isObserved: Bool) {
        guard registration.approval == .manual else { return (.registered, false) }
        return mode == .observe ? (.registered, true) : (.pending, false)
    }
}

/// Decides whether an app may be added or changed, from its record and the other apps' records. Stores do not check these rules.
extension AppRecord {
    /// The audit event of adding this record.
    func adding(
        beside others: OtherApps, at now: UnixTime, by actor: String, masking mask: SecretMask
    ) throws(ContractError) -> AuditEvent {
        try requireOwnAudiences(beside: others)
        // The reverse of `requireOwnAudiences`: no other app may issue tokens for this app's id. `TokenIssuer` checks again,
        // because two changes can run concurrently.
        for other in others.records where other.signature.tokenAudiences.contains(appID.text) {
            throw ContractError("app_id: \(appID) is one of the token_audiences of \(other.appID)", code: .conflict)
        }
        return event(.appAdded, at: now, by: actor, masking: mask)
    }

    /// The audit event of replacing the record `current` by this one, and whether the replacement requires that the app has no
    /// device.
    func replacing(
        _ current: AppRecord, beside others: OtherApps, at now: UnixTime, by actor: String, masking mask: SecretMask
    ) throws(ContractError) -> (event: AuditEvent, needsNoDevices: Bool) {
        try requireOwnAudiences(beside: others)
        try requireCompromises(of: current, at: now)
        return (
            event(.appChanged, at: now, by: actor, before: current, masking: mask), current.buildChannel != buildChannel
        )
    }

    /// Throws if a token audience is the id of another app: that app's backends would accept the tokens.
    private func requireOwnAudiences(beside others: OtherApps) throws(ContractError) {
        // An empty audience is refused: a backend whose audience is empty by mistake would accept the app's tokens.
        guard signature.tokenAudiences.allSatisfy(\.isAudience) else {
            throw ContractError(
                "signature.token_audiences: an audience has a character, no white space at its ends and no control characters"
            )
        }
        let audiences = Set(signature.tokenAudiences)
        for other in others.ids where audiences.contains(other.text) {
            throw ContractError("signature.token_audiences: \(other) is the id of another app", code: .conflict)
        }
    }

    /// A key that is refused after a compromise must not become valid again by mistake. So a change either keeps every demand
    /// of `keys.compromise` at least as strict, or lifts all demands with null.
    private func requireCompromises(of current: AppRecord, at now: UnixTime) throws(ContractError) {
        let demands = keys.compromises
        let isKept = current.keys.compromises.allSatisfy { old in
            demands.contains { new in
                // A demand applies from `keysBefore` on. If the new demand's time were later than now, the keys that the old demand
                // affects would be accepted again until then.
                new.keysBefore >= old.keysBefore && new.keysBefore <= max(old.keysBefore, now)
                    && new.rotateBy <= old.rotateBy
            }
        }
        guard isKept || demands.isEmpty else {
            let advice =
                "keys.compromise: a demand that is set would be weaker; list it beside the new one, or set null to lift it"
            throw ContractError(advice, code: .conflict)
        }
    }

    private func event(
        _ code: AuditEvent.Code, at now: UnixTime, by actor: String, before: AppRecord? = nil, masking mask: SecretMask
    ) -> AuditEvent {
        var detail = JSONObject([("after", .object(json(secrets: .masked(mask))))])
        if let before { detail["before"] = .object(before.json(secrets: .masked(mask))) }
        return AuditEvent(code, at: now, actor: actor, appID: appID, detail: detail)
    }
}

extension StoredApp {
    /// The change that removes this app. Each of `credentials` that lists the app stops listing it, or is revoked if it lists no other app.
    func removing(losing credentials: [Credential], at now: UnixTime, by actor: String) -> AppChange {
        AppChange(
            removing: self, changing: credentials.compactMap { $0.applying(.lose(appID), at: now, by: actor) },
            recording: AuditEvent(
                .appRemoved, at: now, actor: actor, appID: appID,
                detail: JSONObject([("before", form?.masked ?? .null)])))
    }
}
