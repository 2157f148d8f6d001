import AuthContract
import Crypto
import StoreConformance
import StrictJSON
import Testing

import class Bytes.Locked

@testable import AuthService

/// Another node, another process or a copy of the request is faster, or the store fails halfway.
@Suite("Changed meanwhile")
struct RaceTests {
    // MARK: Devices

    /// Rotates the device to this key right before the next rotation is stored.
    private func rotateFirst(_ device: TestDevice, to key: P256.Signing.PrivateKey, in world: World) async throws {
        let (now, key) = (world.clock.now, DevicePublicKey(key.publicKey))
        await world.stores.interrupt(.save) { stores in
            _ = try? stores.change(device.id, of: device.appID) { row in
                (row.previousKey, row.key, row.keyRotatedAt) = (row.key, key, now)
            }
        }
    }

    @Test("a rotation whose copy was faster is answered like the copy")
    func copyOfARotation() async throws {
        let world = try await World()
        let (device, key) = (try await world.device(), P256.Signing.PrivateKey())
        try await rotateFirst(device, to: key, in: world)
        let rotatedAt = world.clock.now
        #expect(try await world.rotate(device, world.rotation(device, to: key)).effectiveAt == rotatedAt)
        #expect(try await world.row(device).key == DevicePublicKey(key.publicKey))
    }

    @Test("a rotation is refused if one to another key was faster")
    func anotherRotation() async throws {
        let world = try await World()
        let (device, faster) = (try await world.device(), P256.Signing.PrivateKey())
        try await rotateFirst(device, to: faster, in: world)
        try await expect(.rotationFailed) { try await world.rotated(device) }
        #expect(try await world.row(device).key == DevicePublicKey(faster.publicKey))
    }

    @Test("a deregistration that the store took is done, though nothing can be read after it")
    func deregistered() async throws {
        let world = try await World()
        let device = try await world.device()
        await world.stores.interrupt(.save) { $0.fail(.device, .binding) }
        try await world.deregister(device)
        await world.stores.recover()
        #expect(try await world.row(device).status == .deregistered)
    }

    @Test("a proof whose device changes each time that it is read is 503, to be sent again in a second")
    func evidenceKeepsChanging() async throws {
        let world = try await World()
        let (key, now) = (P256.Signing.PrivateKey(), world.clock.now)
        func enrolment(_ labels: [String]) async throws -> RegisterRequest {
            try await world.enrolment(
                key, platform: .android, proof: { TestGoogle.token($0, at: now, labels: labels) })
        }
        let id = try await world.register(try await enrolment(["MEETS_DEVICE_INTEGRITY"]), []).deviceID
        let app = try AppID(World.appID)
        await world.stores.interrupt(.save) { Self.demandRotation($0, of: id, app, by: now + 1000) }
        let again = try await enrolment(["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"])
        let refusal = try await expect(.serviceUnavailable) { try await world.register(again, []) }
        #expect(refusal?.retryAfter == 1)
    }

    /// Changes the device before each attempt to store it.
    private static func demandRotation(
        _ stores: isolated MemoryStores, of device: DeviceID, _ app: AppID, by time: UnixTime
    ) {
        _ = try? stores.change(device, of: app) { $0.mustRotate = RotationDemand(by: time, reason: .scheduled) }
        stores.interrupt(.save) { demandRotation($0, of: device, app, by: time + 1) }
    }

    @Test("the development header refuses a registration of a production app before its challenge is used up")
    func developmentHeader() async throws {
        let world = try await World(["build_channel": "production", "development_integrity_allowed": false])
        let now = world.clock.now
        let genuine = try await world.enrolment(
            P256.Signing.PrivateKey(), platform: .android, proof: { TestGoogle.token($0, at: now) })
        try await expect(.devModeNotAllowed) {
            try await world.register(genuine, [(HeaderName.developmentMode, "false")])
        }
        #expect(world.google.questions == 0)
        #expect(try await world.register(genuine, []).status == .registered)
    }

    // MARK: Keys

    @Test("the key set needs no write to the store while no key is spent")
    func keySet() async throws {
        let world = try await World()
        _ = try await world.service.signingKeys.keySet()
        world.clock.advance(10)
        await world.stores.fail(.saveSigningKeys)
        #expect(try await world.service.signingKeys.keySet()["keys"]?.array?.count == 2)
        // Clients may cache the key set for five minutes.
        #expect(SigningKeys.cacheLife == 300)
    }

    @Test("when the only key that ever signed is revoked, the standby is recorded as signing from now on")
    func firstKeyRevoked() async throws {
        let world = try await World()
        let keys = world.service.signingKeys
        _ = try await keys.keySet()
        let before = try await keys.list()
        #expect(before.map(\.use) == [.signing, .standby])
        world.clock.advance(10)
        #expect(try await keys.revoke(before[0].id, actor: "test"))
        let after = try await world.stores.signingKeys()
        #expect(after.first?.id == before[1].id && after.first?.signsFrom == world.clock.now)
        #expect(try await keys.list().map(\.use) == [.signing, .standby])
    }

    @Test("a signing key that does not open signs nothing for a minute, and is not published")
    func damagedSigningKey() async throws {
        let world = try await World()
        let damaged = StoredSigningKey(id: "damaged", sealedKey: [1, 2, 3], createdAt: world.clock.now)
        let change = SigningKeyChange(from: [], to: [damaged], at: world.clock.now, recording: nil)
        #expect(try await world.stores.save(change))
        let keys = world.service.signingKeys
        let refusal = try await expect(.serviceUnavailable) { try await keys.sign(JSONObject(), type: "JWT") }
        #expect(refusal?.retryAfter == 60)
        #expect(try await keys.keySet()["keys"]?.array?.count == 1)
        #expect(try await keys.unreadable() == ["damaged"])
    }

    @Test(
        "a key is admitted at the twentieth attempt, if other processes change the check values before",
        arguments: [(19, true), (20, false)])
    func admission(interruptions: Int, isAdmitted: Bool) async throws {
        let keys = (1...3).map { [UInt8](repeating: $0, count: 32) }
        let checks = try #require(ServiceKey(keys)).checks
        let stores = MemoryStores()
        #expect(try await stores.replaceKeyChecks([], with: [checks[1]], recording: nil))
        await stores.interrupt(.replaceKeyChecks) { Self.alternate($0, checks, left: interruptions) }
        let rules = ServiceKeyRules(store: stores, key: try #require(ServiceKey(keys)))
        do {
            try await rules.admit(writing: true)
            #expect(isAdmitted)
        } catch let error as ServiceKeyError { #expect(!isAdmitted && error.code == .busy) }
    }

    /// Adds or removes a check value right before each of the next `left` replacements, as other processes do when they
    /// rotate the service key.
    private static func alternate(_ stores: isolated MemoryStores, _ checks: [ServiceKeyCheck], left: Int) {
        guard left > 0, let known = try? stores.keyChecks() else { return }
        let other = known.count == 1 ? [checks[1], checks[2]] : [checks[1]]
        _ = try? stores.replaceKeyChecks(known, with: other, recording: nil)
        stores.interrupt(.replaceKeyChecks) { alternate($0, checks, left: left - 1) }
    }

    // MARK: The audit chain

    @Test("the hash of an event is the documented one: existing logs stay verifiable, and nil is not empty")
    func auditHash() {
        func bytes(_ number: Int64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
        func hash(_ app: String?) -> [UInt8] {
            let entry = AuditChain.Entry(
                sequence: 7, code: "code", at: 9, actor: "é", appID: app, deviceID: "d", detail: "{}")
            return AuditChain.hash(entry, after: [UInt8](repeating: 1, count: 32))
        }
        func expected(_ app: [UInt8]) -> [UInt8] {
            var text = Array("synheart-auth/audit/v1\n".utf8) + [UInt8](repeating: 1, count: 32) + bytes(7) + bytes(9)
            text += bytes(4) + Array("code".utf8) + bytes(2) + Array("é".utf8)
            text += app + bytes(1) + Array("d".utf8) + bytes(2) + Array("{}".utf8)
            return Array(SHA256.hash(data: text))
        }
        #expect(hash(nil) == expected(bytes(-1)))
        #expect(hash("") == expected(bytes(0)))
        #expect(hash("a") == expected(bytes(1) + [UInt8(ascii: "a")]))
    }
}

@Suite("Bounded cache")
struct BoundedCacheTests {
    @Test("holds at most its capacity, and the half of it that was used last", arguments: [2, 3, 4, 5, 64])
    func capacity(_ capacity: Int) {
        var cache = BoundedCache<Int, Int>(capacity: capacity)
        for number in 0..<1000 { cache[number] = number }
        // A lookup changes the order in which entries are evicted, so each lookup uses a copy of the cache.
        let held = (0..<1000).filter { number in
            var copy = cache
            return copy[number] == number
        }
        #expect(held.count <= capacity)
        #expect(held.suffix(capacity / 2) == Array(1000 - capacity / 2..<1000))
    }

    @Test("changing an entry that is there drops no other one")
    func changes() {
        var cache = BoundedCache<Int, Int>(capacity: 4)
        for number in 1...4 { cache[number] = number }
        for _ in 0..<10 { cache[4] = 5 }
        for _ in 0..<10 { cache.update(3, from: 0) { $0 += 1 } }
        #expect(cache[4] == 5 && cache[3] == 13)
        #expect(cache[1] == 1)
    }

    @Test("an entry that is used stays while others come and go")
    func use() {
        var cache = BoundedCache<Int, Int>(capacity: 4)
        cache[0] = 1
        for number in 1...100 {
            cache[number] = number
            #expect(cache[0] == 1)
        }
        cache[0] = nil
        #expect(cache[0] == nil)
    }

    @Test("its use is counted: hits and misses, each as such")
    func counts() {
        var use = CacheUse()
        for isHit in [true, false, true] { use.count(hit: isHit) }
        #expect(use.hits == 2 && use.misses == 1)
    }
}
