import AuthContract
import Bytes
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// A database works only with its own service key, and only a rotation changes the key.
struct ServiceKeyTests {
    private let world: World
    private let old = World.serviceKey
    private let new = [UInt8](repeating: 2, count: 32)
    private let third = [UInt8](repeating: 3, count: 32)

    init() async throws {
        // The world's app record is sealed with the old key.
        world = try await World()
    }

    private func rules(_ keys: [UInt8]...) throws -> ServiceKeyRules {
        ServiceKeyRules(store: world.stores, key: try #require(ServiceKey(keys)), clock: world.clock)
    }

    private func code(_ body: () async throws -> Void) async throws -> ServiceKeyError.Code? {
        do {
            try await body()
            return nil
        } catch let error as ServiceKeyError { return error.code }
    }

    private func checks() async throws -> [ServiceKeyCheck] { try await world.stores.keyChecks() }

    private func check(_ key: [UInt8]) throws -> ServiceKeyCheck { try #require(ServiceKey(key)?.checks.first) }

    /// Stores values of each kind except an app record, sealed with a key.
    private func seal(with bytes: [UInt8]) async throws {
        let key = try #require(ServiceKey(bytes))
        let (device, app, now) = (DeviceID(from: SystemRandom()), try AppID(World.appID), world.clock.now)
        try await world.stores.keep(
            PendingProof(
                appID: app, deviceID: device, arrivedAt: now,
                sealedRequest: key.seal([1, 2, 3], context: PendingProofs.context(device))))
        let id = RandomUUID(from: SystemRandom()).text
        let summary = RecordingSummary(
            id: id, appID: app, deviceID: nil, recordedAt: now, expiresAt: now + 60, format: "f", code: "c", step: "s")
        try await world.stores.keep(
            RecordedRefusal(
                summary: summary, sealed: key.seal([4, 5], context: RefusalRecorder.context(id, of: app))),
            within: .standard)
        let webhook = Webhook(
            id: id, url: "https://a.example/", scope: .allApps,
            sealedSecret: try key.seal([6], context: Webhooks.context(id)), createdAt: now, position: 0)
        try #require(
            try await world.stores.insert(webhook, recording: AuditEvent(.webhookAdded, at: now, actor: "test")))
        _ = try await SigningKeys(store: world.stores, key: key, clock: world.clock).rotate(actor: "test")
    }

    private func opens(_ bytes: [UInt8]) async throws {
        let key = try #require(ServiceKey(bytes))
        for proof in try await world.stores.pendingProofs(after: nil, limit: 100) {
            #expect(
                try key.open(proof.sealedRequest, context: PendingProofs.context(proof.deviceID)) == [1, 2, 3])
        }
        for summary in try await world.stores.recordings(of: nil, before: nil, limit: 100) {
            let evidence = try #require(try await world.stores.recording(summary.id, of: summary.appID))
            #expect(
                try key.open(evidence.sealed, context: RefusalRecorder.context(summary.id, of: summary.appID)) == [
                    4, 5,
                ])
        }
        for webhook in try await world.stores.webhooks() {
            #expect(try key.open(webhook.sealedSecret, context: Webhooks.context(webhook.id)) == [6])
        }
        let service = AuthService(
            stores: .init(
                challenges: world.stores, replay: world.stores, apps: world.stores, devices: world.stores,
                audit: world.stores, credentials: world.stores, signingKeys: world.stores), key: key, clock: world.clock
        )
        #expect(try await service.apps.records().count == 1)
        _ = try await service.signingKeys.keySet()
    }

    // MARK: Keys

    @Test func `a key is 32 bytes, and a list has 1 to 8 different keys`() {
        #expect(ServiceKey([UInt8](repeating: 1, count: 31)) == nil)
        #expect(ServiceKey([UInt8](repeating: 1, count: 33)) == nil)
        #expect(ServiceKey([[UInt8]]()) == nil)
        #expect(ServiceKey([old, old]) == nil)
        #expect(ServiceKey((0..<9).map { [UInt8](repeating: $0, count: 32) }) == nil)
        #expect(ServiceKey((0..<8).map { [UInt8](repeating: $0, count: 32) }) != nil)
    }

    @Test func `the first key seals, and every key opens for the same context`() throws {
        let (both, first, second) = (ServiceKey([new, old]), ServiceKey(new), ServiceKey(old))
        let sealed = try #require(both).seal([7], context: "a")
        #expect(try first?.open(sealed, context: "a") == [7])
        #expect(throws: StoreError.self) { try second?.open(sealed, context: "a") }
        #expect(try both?.open(#require(second).seal([8], context: "a"), context: "a") == [8])
        #expect(throws: StoreError.self) { try both?.open(sealed, context: "b") }
        for count in 0..<28 {
            #expect(throws: StoreError.self) { try both?.open([UInt8](repeating: 0, count: count), context: "a") }
        }
    }

    @Test func `a check value belongs to one key, and is parsed as it is written`() throws {
        #expect(try check(old) != check(new))
        #expect(try ServiceKeyCheck(check(old).text) == check(old))
        #expect(ServiceKeyCheck("") == nil && ServiceKeyCheck("AAAA") == nil)
        #expect(try ServiceKey([new, old])?.checks == [check(new), check(old)])
    }

    // MARK: Admission

    @Test func `a database without a check value is adopted by the key that opens it, and by no other`() async throws {
        try await seal(with: old)
        #expect(try await code { try await rules(new).admit(writing: true) } == .unopened)
        #expect(try await checks() == [])
        try await rules(old).admit(writing: false)
        #expect(try await checks() == [check(old)])
        #expect(try await code { try await rules(new).admit(writing: true) } == .anotherKey)
        try await rules(old).admit(writing: true)
        #expect(try await checks() == [check(old)])
    }

    @Test(arguments: SealedRow.Kind.allCases)
    func `a database with a row that the key does not open is not adopted`(_ kind: SealedRow.Kind) async throws {
        try await seal(with: old)
        let row = try #require(try await world.stores.sealedRows(kind, after: "", limit: 1).first)
        _ = try await world.stores.reseal([(row, Array("{\"record\":{},\"sealed\":\"AAAA\"}".utf8))])
        #expect(try await code { try await rules(old).admit(writing: false) } == .unopened)
        #expect(try await code { try await rules(old).inspect() } == .unopened)
        #expect(try await checks() == [])
    }

    @Test func `an empty database belongs to the first key that is used with it`() async throws {
        let stores = MemoryStores(clock: world.clock)
        try await ServiceKeyRules(store: stores, key: #require(ServiceKey(new)), clock: world.clock).admit(
            writing: false)
        #expect(try await stores.keyChecks() == [check(new)])
    }

    @Test func `a database that two keys sealed is adopted by both together`() async throws {
        try await seal(with: new)
        #expect(try await code { try await rules(old).admit(writing: false) } == .unopened)
        try await rules(new, old).admit(writing: false)
        #expect(try await checks() == [check(new), check(old)])
        #expect(try await code { try await rules(old).admit(writing: false) } == .keyMissing)
        #expect(try await rules(new, old).rotate(actor: "test", lock: FreeLock()) == 1)
        try await opens(new)
    }

    @Test func `a new first key is needed from the moment at which it may seal`() async throws {
        try await rules(old).admit(writing: true)
        try await rules(new, old).admit(writing: false)
        #expect(try await checks() == [check(old)])
        try await rules(old).admit(writing: true)
        try await rules(new, old).admit(writing: true)
        #expect(try await checks() == [check(new), check(old)])
        #expect(try await code { try await rules(old).admit(writing: false) } == .keyMissing)
        #expect(try await code { try await rules(new).admit(writing: false) } == .keyMissing)
        #expect(try await code { try await rules(old, new).admit(writing: false) } == .wrongOrder)
        #expect(try await code { try await rules(third).admit(writing: false) } == .anotherKey)
        try await rules(new, third, old).admit(writing: true)
        #expect(try await checks() == [check(new), check(old)])
    }

    @Test func `an inspection changes nothing`() async throws {
        try await rules(old).inspect()
        #expect(try await checks() == [])
        #expect(try await code { try await rules(new).inspect() } == .unopened)
        try await rules(old).admit(writing: false)
        #expect(try await code { try await rules(new).inspect() } == .anotherKey)
    }

    @Test func `two processes can adopt a database with the same key`() async throws {
        let first = try check(old)
        await world.stores.interrupt(.replaceKeyChecks) { stores in
            _ = try? stores.replaceKeyChecks([], with: [first], recording: nil)
        }
        try await rules(old).admit(writing: true)
        #expect(try await checks() == [first])
    }

    // MARK: Rotation

    @Test func `a rotation seals every row again, and removes the old key`() async throws {
        try await seal(with: old)
        try await rules(old).admit(writing: true)
        // The rows are an app record, a pending proof, evidence, a webhook, and three signing keys: one signs, two are standbys.
        #expect(try await rules(new, old).rotate(actor: "test", lock: FreeLock()) == 7)
        #expect(try await checks() == [check(new)])
        try await opens(new)
        #expect(try await code { try await rules(old).admit(writing: false) } == .anotherKey)
        let events = try await world.audited(.serviceKeyRotated)
        #expect(events.count == 1)
        #expect(events.first?.detail["rows"]?.integer == 7)
        #expect(try await rules(new).rotate(actor: "test", lock: TakenLock()) == 0)
        #expect(try await world.audited(.serviceKeyRotated).count == 1)
    }

    @Test(arguments: [MemoryStores.Call.replaceKeyChecks, .sealedRows, .reseal])
    func `an interrupted rotation needs both keys, and can be continued`(_ call: MemoryStores.Call) async throws {
        try await seal(with: old)
        try await rules(old).admit(writing: true)
        for attempt in 0..<6 {
            // Each attempt fails at a later call.
            let failing = Locked(attempt)
            await arm(call, failing)
            _ = try? await rules(new, old).rotate(actor: "test", lock: FreeLock())
            await world.stores.recover()
            if try await checks() == [check(new)] { break }
            if try await checks().count == 2 {
                #expect(try await code { try await rules(old).admit(writing: false) } == .keyMissing)
            }
        }
        _ = try await rules(new, old).rotate(actor: "test", lock: FreeLock())
        #expect(try await checks() == [check(new)])
        try await opens(new)
    }

    /// Makes a call fail after `left` successful ones.
    private func arm(_ call: MemoryStores.Call, _ left: Locked<Int>) async {
        await world.stores.interrupt(call) { stores in Self.passOrFail(stores, call, left) }
    }

    private static func passOrFail(_ stores: isolated MemoryStores, _ call: MemoryStores.Call, _ left: Locked<Int>) {
        let isLast = left.withLock { left in
            left -= 1
            return left < 0
        }
        if isLast { return stores.fail(call) }
        stores.interrupt(call) { passOrFail($0, call, left) }
    }

    @Test func `a rotation beside a service that does not know the new key is refused`() async throws {
        try await rules(old).admit(writing: true)
        #expect(
            try await code { _ = try await rules(new, old).rotate(actor: "test", lock: TakenLock()) } == .serviceRunning
        )
        #expect(try await checks() == [check(old)])
        // The service was restarted with both keys.
        try await rules(new, old).admit(writing: true)
        _ = try await rules(new, old).rotate(actor: "test", lock: TakenLock())
        #expect(try await checks() == [check(new)])
    }

    @Test func `a new first key is not recorded beside a service that does not know it`() async throws {
        try await rules(old).admit(writing: true)
        // Reading commands are admitted, because they seal nothing.
        try await rules(new, old).admit(writing: false, lock: TakenLock())
        #expect(try await code { try await rules(new, old).admit(writing: true, lock: TakenLock()) } == .serviceRunning)
        #expect(try await checks() == [check(old)])
        #expect(
            try await code { _ = try await rules(new, old).rotate(actor: "test", lock: TakenLock()) } == .serviceRunning
        )
        // The service was restarted with both keys.
        try await rules(new, old).admit(writing: true)
        try await rules(new, old).admit(writing: true, lock: TakenLock())
        #expect(try await checks() == [check(new), check(old)])
    }

    @Test func `a database that two keys sealed is not adopted beside a running service`() async throws {
        try await seal(with: new)
        for writing in [false, true] {
            #expect(
                try await code { try await rules(new, old).admit(writing: writing, lock: TakenLock()) }
                    == .serviceRunning)
        }
        #expect(
            try await code { _ = try await rules(new, old).rotate(actor: "test", lock: TakenLock()) } == .serviceRunning
        )
        #expect(try await checks() == [])
    }

    @Test func `a rotation back to the old key is refused beside a service that seals with the new one`() async throws {
        try await rules(old).admit(writing: true)
        try await rules(new, old).admit(writing: true)
        #expect(
            try await code { _ = try await rules(old, new).rotate(actor: "test", lock: TakenLock()) } == .serviceRunning
        )
        #expect(try await checks() == [check(new), check(old)])
    }

    @Test func `a rotation keeps the old key while another process still seals with it`() async throws {
        try await seal(with: old)
        try await rules(old).admit(writing: true)
        await sealAgain(with: try #require(ServiceKey(old)))
        #expect(try await code { _ = try await rules(new, old).rotate(actor: "test", lock: FreeLock()) } == .busy)
        #expect(try await checks() == [check(new), check(old)])
        #expect(try await world.audited(.serviceKeyRotated).isEmpty)
    }

    /// Before each write of a rotation, seals a pending proof again with this key, as another process with the key does.
    private func sealAgain(with key: ServiceKey) async {
        await world.stores.interrupt(.reseal) { Self.sealAgain($0, with: key) }
    }

    private static func sealAgain(_ stores: isolated MemoryStores, with key: ServiceKey) {
        if let row = try? stores.sealedRows(.pendingProof, after: "", limit: 1).first,
            let context = (try? DeviceID(row.id)).map(PendingProofs.context),
            let sealed = try? key.seal([1, 2, 3], context: context)
        {
            _ = try? stores.reseal([(row, sealed)])
        }
        stores.interrupt(.reseal) { sealAgain($0, with: key) }
    }

    @Test func `a rotation can be reverted`() async throws {
        try await seal(with: old)
        try await rules(old).admit(writing: true)
        try await rules(new, old).admit(writing: true)
        try await seal(with: new)
        _ = try await rules(old, new).rotate(actor: "test", lock: FreeLock())
        #expect(try await checks() == [check(old)])
        try await opens(old)
    }

    @Test func `a rotation keeps a key that a row still needs`() async throws {
        try await seal(with: third)
        try await rules(old, third).admit(writing: true)
        #expect(try await code { _ = try await rules(new, old).rotate(actor: "test", lock: FreeLock()) } == .keyMissing)
        let row = try #require(try await world.stores.sealedRows(.evidence, after: "", limit: 1).first)
        _ = try await world.stores.reseal([(row, [1, 2, 3])])
        #expect(
            try await code { _ = try await rules(new, old, third).rotate(actor: "test", lock: FreeLock()) } == .unopened
        )
        #expect(try await checks().count == 3)
    }

    @Test func `audit heads of either key are valid while both are listed`() async throws {
        func trail(_ keys: [UInt8]...) throws -> AuditTrail {
            AuditTrail(log: world.stores, key: try #require(ServiceKey(keys)), clock: world.clock)
        }
        let head = try await trail(old).head()
        #expect(try await trail(new, old).verify(against: head) == .intact)
        #expect(try await trail(new).verify(against: head) == .headOfOtherKey)
        #expect(try await trail(new, old).head().signature != head.signature)
    }

    @Test func `audit heads of former keys stay valid after rotations, and those of other keys do not become valid`()
        async throws
    {
        func trail(_ key: [UInt8]) throws -> AuditTrail {
            AuditTrail(log: world.stores, key: try #require(ServiceKey(key)), clock: world.clock)
        }
        let (first, foreign) = (try await trail(old).head(), try await trail([UInt8](repeating: 9, count: 32)).head())
        try await rules(old).admit(writing: true)
        _ = try await rules(new, old).rotate(actor: "test", lock: FreeLock())
        let second = try await trail(new).head()
        _ = try await rules(third, new).rotate(actor: "test", lock: FreeLock())
        for head in [first, second] { #expect(try await trail(third).verify(against: head) == .intact) }
        #expect(try await trail(third).verify(against: foreign) == .headOfOtherKey)
        // An attacker who can write the log, but lacks the service key, cannot make audit heads valid that another key signed.
        let forged = try AuditTrail.succession(
            of: try #require(ServiceKey([[UInt8](repeating: 8, count: 32), [UInt8](repeating: 9, count: 32)])))
        try await world.stores.append(
            AuditEvent(
                .serviceKeyRotated, at: world.clock.now, actor: "attacker",
                detail: JSONObject([("audit_keys", forged)])))
        #expect(try await trail(third).verify(against: foreign) == .headOfOtherKey)
        #expect(try await trail(third).verify(against: first) == .intact)
    }
}
