package import AuthContract
internal import StrictJSON

/// A command on the signing keys. `SigningKeyRing.applying(_:at:by:)` decides what it changes.
enum SigningKeyCommand: Sendable {
    /// Adds this key if the signing key or the standby is missing.
    case complete(StoredSigningKey)
    /// An operator makes this key the standby. The previous standby signs once it has been published for long enough.
    case rotate(StoredSigningKey)
    /// An operator revokes the key with this id. `replacement` becomes the standby if one is needed.
    case revoke(String, replacement: StoredSigningKey)
    /// Removes the keys whose last token has expired.
    case removeSpent
}

/// The signing keys, oldest first, and every rule about them. Stores do not check these rules.
///
/// The newest key is the standby: it is published, and signs only after the next rotation, or when the signing key is
/// revoked. The signing key is the newest of the other keys that has been published for `publishedAhead`. Older keys stay
/// published while their tokens can be valid. So, unless a key was revoked, a backend with a cached key set meets no unknown key.
package struct SigningKeyRing: Sendable {
    let keys: [StoredSigningKey]

    private static let publishedAhead = SigningKeys.cacheLife + 60
    /// The largest clock difference between two nodes, in seconds. A node whose clock is behind signs with the old key for that
    /// much longer.
    private static let clockDifference: Int64 = 60

    /// The keys as they are stored.
    package init(_ keys: [StoredSigningKey]) { self.keys = keys }

    /// Whether there are a signing key and a standby.
    var isComplete: Bool { keys.count >= 2 }

    /// The index of the signing key; nil without keys.
    func signing(at now: UnixTime) -> Int? {
        guard !keys.isEmpty else { return nil }
        let candidates = keys.count == 1 ? keys[...] : keys.dropLast()
        // If no key has been published for long enough, the oldest signs.
        return candidates.lastIndex { now >= Self.signsFrom($0) } ?? candidates.startIndex
    }

    /// When the last token of the key at this index expires. Nil while the next key is only the standby or does not
    /// exist, because the key may then still sign.
    ///
    /// The next key signs in its place once the next key has been published for long enough and a newer key is the
    /// standby.
    package func lastTokenEnds(ofKeyAt index: Int) -> UnixTime? {
        guard index >= 0, index + 2 < keys.count else { return nil }
        let (successor, standby) = (keys[index + 1], keys[index + 2])
        let began = max(Self.signsFrom(successor), standby.createdAt)
        return began + TokenIssuer.maximumLife + Self.clockDifference
    }

    /// The change that a command makes; nil: the keys are already as the command requires, or no key has the id to revoke.
    func applying(_ command: SigningKeyCommand, at now: UnixTime, by actor: String) -> SigningKeyChange? {
        func change(
            to after: [StoredSigningKey], revoking revoked: String? = nil, _ code: AuditEvent.Code, _ detail: JSONObject
        ) -> SigningKeyChange {
            SigningKeyChange(
                from: keys, to: after, revoking: revoked, at: now,
                recording: AuditEvent(code, at: now, actor: actor, detail: detail))
        }
        switch command {
        case .complete(let key):
            return isComplete ? nil : applying(.rotate(key), at: now, by: actor)
        case .rotate(let key):
            return change(to: keys + [key], .signingKeyRotated, JSONObject([("kid", .string(key.id))]))
        case .revoke(let id, let replacement):
            guard let signing = signing(at: now), let place = keys.firstIndex(where: { $0.id == id }) else {
                return nil
            }
            var after = keys
            // The next key signs at once, even if it was just published: a retired key must not sign again.
            if place == signing, after.indices.contains(place + 1) { after[place + 1].signsFrom = now }
            after.remove(at: place)
            // The newest of several keys is the standby and does not sign. So without a new standby, a retired key could sign again.
            let needsStandby = place >= signing
            if needsStandby { after.append(replacement) }
            return change(
                to: after, revoking: id, .signingKeyRevoked,
                JSONObject([
                    ("kid", .string(id)), ("standby", needsStandby ? .string(replacement.id) : .null),
                ]))
        case .removeSpent:
            let left = keys.indices.filter { index in lastTokenEnds(ofKeyAt: index).map { now <= $0 } ?? true }
            guard left.count < keys.count else { return nil }
            return SigningKeyChange(from: keys, to: left.map { keys[$0] }, at: now, recording: nil)
        }
    }

    /// The time from which a key may sign: when it has been published for long enough, or when the previous key was revoked.
    private static func signsFrom(_ key: StoredSigningKey) -> UnixTime {
        let published = key.createdAt + publishedAhead
        return key.signsFrom.map { min($0, published) } ?? published
    }
}
