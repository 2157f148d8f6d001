import AuthContract
import StrictJSON
import Testing

@testable import AuthService

/// The signing keys under random orders of commands.
struct SigningKeyRingTests {
    private static let start = UnixTime(1_780_272_000)
    /// The seconds for which a token may be valid on the slowest clock.
    private static let tokenLife: Int64 = 660

    /// The state of every key that ever existed, independent of the implementation.
    private struct Model {
        /// Every key, in the order of creation.
        var made: [String] = []
        var revoked: Set<String> = []
        var createdAt: [String: UnixTime] = [:]
        /// The last time at which each key was the signer.
        var signedAt: [String: UnixTime] = [:]
        var lastSigner: String?
        /// Whether the next signer may be younger than `publishedAhead`: the previous one was revoked, or there was none.
        var signerWasRevoked = true

        mutating func key(at now: UnixTime) -> StoredSigningKey {
            let key = StoredSigningKey(id: "key \(made.count)", sealedKey: [], createdAt: now)
            made.append(key.id)
            createdAt[key.id] = now
            return key
        }

        func place(_ id: String?) -> Int { id.flatMap { made.firstIndex(of: $0) } ?? -1 }
    }

    @Test(
        "random commands never let a retired or revoked key sign, and keep each key while its tokens are valid",
        arguments: 0..<60)
    func walk(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        var (model, ring, now) = (Model(), SigningKeyRing([]), Self.start)
        for step in 0..<300 {
            now = now + Int64.random(in: 0...400, using: &random)
            try check(ring, &model, at: now)
            let before = ring
            let number = step < 2 ? 0 : Int.random(in: 0..<10, using: &random)
            switch number {
            case 0..<2:
                let change = ring.applying(.complete(model.key(at: now)), at: now, by: "test")
                #expect((change == nil) == (ring.keys.count >= 2))
                if change == nil { model.made.removeLast() }
                if let change { ring = try Self.saved(change, from: ring, .signingKeyRotated) }
            case 2..<4:
                let key = model.key(at: now)
                let change = try #require(ring.applying(.rotate(key), at: now, by: "test"))
                ring = try Self.saved(change, from: ring, .signingKeyRotated)
                #expect(ring.keys == before.keys + [key])
            case 4..<6:
                let id = try #require(model.made.randomElement(using: &random))
                let place = ring.keys.firstIndex { $0.id == id }
                let replacement = model.key(at: now)
                let change = ring.applying(.revoke(id, replacement: replacement), at: now, by: "test")
                #expect((change != nil) == (place != nil), "only a listed key is revoked")
                guard let change else {
                    model.made.removeLast()
                    break
                }
                #expect(change.revoked == id)
                let isRetired = place.map { $0 < ring.signing(at: now) ?? 0 } ?? false
                #expect(change.added == (isRetired ? [] : [replacement]))
                if isRetired { model.made.removeLast() }
                ring = try Self.saved(change, from: ring, .signingKeyRevoked)
                model.revoked.insert(id)
                if id == model.lastSigner { model.signerWasRevoked = true }
            default:
                guard let change = ring.applying(.removeSpent, at: now, by: "test") else { break }
                #expect(change.event == nil && change.revoked == nil && change.added.isEmpty)
                #expect(change.removed.isEmpty == false)
                ring = SigningKeyRing(change.after)
            }
            try check(ring, &model, at: now)
        }
    }

    /// Checks the event of a change, and returns the keys after the change.
    private static func saved(
        _ change: SigningKeyChange, from ring: SigningKeyRing, _ code: AuditEvent.Code
    ) throws -> SigningKeyRing {
        #expect(change.before == ring.keys)
        let event = try #require(change.event)
        #expect(event.code == code && event.at == change.at && event.actor == "test")
        return SigningKeyRing(change.after)
    }

    private func check(_ ring: SigningKeyRing, _ model: inout Model, at now: UnixTime) throws {
        let listed = ring.keys.map(\.id)
        #expect(model.revoked.isDisjoint(with: listed), "a revoked key is listed")
        let places = listed.map { model.place($0) }
        #expect(places == places.sorted(), "the order of the keys")
        guard ring.keys.count >= 2 else { return }
        let signer = listed[try #require(ring.signing(at: now))]
        #expect(signer != listed.last, "the standby signs")
        #expect(model.place(signer) >= model.place(model.lastSigner), "a retired key signs again")
        if signer != model.lastSigner {
            let age = now - (model.createdAt[signer] ?? now)
            #expect(age >= SigningKeys.cacheLife + 60 || model.signerWasRevoked, "a key signs before it was published")
            model.signerWasRevoked = false
        }
        (model.lastSigner, model.signedAt[signer]) = (signer, now)
        for (id, time) in model.signedAt where now - time <= Self.tokenLife && !model.revoked.contains(id) {
            #expect(listed.contains(id), "a key whose tokens are valid is gone")
        }
    }
}
