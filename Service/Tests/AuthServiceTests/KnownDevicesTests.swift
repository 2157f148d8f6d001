import AuthContract
import Bytes
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

@Suite("What a node knows of the devices that exist")
struct KnownDevicesTests {
    /// An audit log that can be replaced, as in a restored database.
    private struct ExchangedLog: AuditLog {
        let log: Locked<MemoryStores>
        /// Whether the log's events were moved to an archive.
        let isArchived = Locked(false)

        init(_ log: MemoryStores) { self.log = Locked(log) }

        private var current: MemoryStores { log.withLock { $0 } }

        func append(_ event: AuditEvent) async throws(StoreError) { try await current.append(event) }

        func events(
            app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            if isArchived.withLock({ $0 }) { return [] }
            return try await current.events(
                app: app, device: device, codes: codes, after: after, before: before, limit: limit)
        }

        func events(
            app: AppID?, device: DeviceID?, after: Int64, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            try await current.events(app: app, device: device, after: after, limit: limit)
        }

        func firstBrokenLink() async throws(StoreError) -> Int64? { try await current.firstBrokenLink() }

        func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? { try await current.link(at: sequence) }
    }

    /// A store with one app, and the ids of the app's devices that a node knows.
    private struct Bench {
        let clock = TestClock(at: World.start)
        let random = SeededRandom(seed: 9)
        let stores: MemoryStores
        let log: ExchangedLog
        let known: KnownDevices
        let app: StoredApp

        init() async throws {
            stores = MemoryStores(clock: clock)
            log = ExchangedLog(stores)
            known = KnownDevices(devices: stores, audit: log, clock: clock)
            app = StoredApp(appID: try AppID(World.appID), sealedJSON: "{}")
            let event = AuditEvent(.appAdded, at: clock.now, actor: "test", appID: app.appID)
            try #require(try await stores.insert(app, recording: event))
        }

        @discardableResult
        func add(_ status: DeviceStatus = .registered) async throws -> DeviceID {
            let (device, event) = sample(status)
            let outcome = try await stores.insert(device, under: app, maximumPending: .max, recording: event)
            try #require(outcome == .inserted)
            return device.deviceID
        }

        /// A device, registered a second ahead of the clock, and the event of its registration.
        func sample(_ status: DeviceStatus = .registered) -> (DeviceRecord, AuditEvent) {
            let device = DeviceRecord(
                appID: app.appID, deviceID: DeviceID(from: random), platform: .ios, status: status,
                key: DevicePublicKey(P256.Signing.PrivateKey().publicKey), assurance: .unproven,
                registeredAt: clock.now + 1)
            let event = AuditEvent(
                status == .pending ? .devicePending : .deviceRegistered, at: clock.now, actor: "device",
                appID: app.appID, deviceID: device.deviceID)
            return (device, event)
        }

        var stranger: DeviceID { DeviceID(from: random) }
    }

    @Test("until all ids were read, every id may exist; then only those of devices that are not deregistered")
    func loading() async throws {
        let bench = try await Bench()
        var ids: [DeviceID] = []
        for _ in 0..<5 { ids.append(try await bench.add()) }
        let gone = try await bench.add(.deregistered)
        await bench.stores.fail(.knownIDs)
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        await bench.stores.recover()
        await bench.stores.fail(.link)
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        await bench.stores.recover()
        await bench.known.update()
        #expect(ids.allSatisfy(bench.known.mayExist))
        #expect(!bench.known.mayExist(bench.stranger))
        #expect(!bench.known.mayExist(gone))
    }

    @Test("more devices than one page are read, and more events than one page")
    func pages() async throws {
        let bench = try await Bench()
        for _ in 0..<1001 { try await bench.add() }
        await bench.known.update()
        var later: [DeviceID] = []
        for number in 0..<2001 { later.append(try await bench.add(number.isMultiple(of: 2) ? .pending : .registered)) }
        await bench.known.update()
        #expect(later.allSatisfy(bench.known.mayExist))
        #expect(!bench.known.mayExist(bench.stranger))
    }

    @Test("a device that registers while all ids are read is known")
    func meanwhile() async throws {
        let bench = try await Bench()
        try await bench.add()
        bench.clock.advance(1)
        let (device, event) = bench.sample()
        await bench.stores.interrupt(.knownIDs) { [app = bench.app] stores in
            // The device registers after the first page was read. Pages begin with the newest device, so no later page has
            // this device.
            stores.interrupt(.knownIDs) { stores in
                _ = try? stores.insert(device, under: app, maximumPending: .max, recording: event)
            }
        }
        await bench.known.update()
        #expect(try await bench.stores.device(device.deviceID, of: device.appID) == device)
        #expect(bench.known.mayExist(device.deviceID))
        #expect(!bench.known.mayExist(bench.stranger))
    }

    @Test("an unknown id passes while what is known is older than five seconds, whatever the clock did")
    func age() async throws {
        let bench = try await Bench()
        await bench.known.update()
        bench.clock.advance(5)
        #expect(!bench.known.mayExist(bench.stranger))
        bench.clock.advance(1)
        #expect(bench.known.mayExist(bench.stranger))
        await bench.stores.fail(.link)
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        await bench.stores.recover()
        await bench.known.update()
        #expect(!bench.known.mayExist(bench.stranger))
        bench.clock.advance(-1)
        #expect(bench.known.mayExist(bench.stranger))
    }

    @Test("while what is known is too old, known ids pass, and 100 others a second")
    func overload() async throws {
        let bench = try await Bench()
        let id = try await bench.add()
        await bench.known.update()
        await bench.stores.fail(.link)
        for _ in 0..<3 {
            bench.clock.advance(6)
            await bench.known.update()
            for _ in 0..<100 { #expect(bench.known.mayExist(bench.stranger)) }
            #expect(!bench.known.mayExist(bench.stranger))
            #expect(bench.known.mayExist(id))
        }
    }

    @Test("a failed read is retried after 200 ms, and each time after twice as long, at most after 2 s")
    func retries() async throws {
        let bench = try await Bench()
        for call in [MemoryStores.Call.knownIDs, .link, .events] {
            try await bench.add()
            await bench.stores.fail(call)
            for milliseconds in [200, 400, 800, 1600, 2000, 2000] {
                #expect(await bench.known.update() == .milliseconds(milliseconds))
            }
            await bench.stores.recover()
            #expect(await bench.known.update() == .seconds(2))
        }
    }

    @Test("a read of all ids that fails continues after the last page")
    func resumed() async throws {
        let bench = try await Bench()
        var ids: [DeviceID] = []
        for _ in 0..<1001 { ids.append(try await bench.add()) }
        // Each call reads one page: 1000 ids, then the rest, then an empty page.
        for _ in 0..<3 {
            #expect(bench.known.mayExist(bench.stranger))
            await bench.stores.interrupt(.knownIDs) { stores in stores.fail(.knownIDs) }
            await bench.known.update()
            await bench.stores.recover()
            // One more device registers while the read is in progress.
            if ids.count == 1001 { ids.append(try await bench.add()) }
        }
        #expect(ids.allSatisfy(bench.known.mayExist))
        #expect(!bench.known.mayExist(bench.stranger))
    }

    @Test("an event of a newer version makes all ids be read again, once: perhaps it added a device")
    func newerEvent() async throws {
        let bench = try await Bench()
        await bench.known.update()
        let id = try await bench.add()
        try await bench.stores.append(
            AuditEvent(
                codeText: "device.imported", at: bench.clock.now, actor: "cli", appID: nil, deviceID: nil,
                detail: JSONObject()))
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        for _ in 0..<2 {
            await bench.known.update()
            #expect(bench.known.mayExist(id))
            #expect(!bench.known.mayExist(bench.stranger))
        }
    }

    @Test("after a restore, whose log does not continue the known one, all ids are read again")
    func restored() async throws {
        let bench = try await Bench()
        try await bench.add()
        await bench.known.update()
        // The restored log is longer and has other events, but none about the device.
        let other = MemoryStores(clock: bench.clock)
        for _ in 0..<9 { try await other.append(AuditEvent(.securityEvent, at: bench.clock.now, actor: "test")) }
        let id = try await bench.add()
        bench.log.log.withLock { $0 = other }
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        await bench.known.update()
        #expect(bench.known.mayExist(id))
        #expect(!bench.known.mayExist(bench.stranger))
    }

    @Test("a log of which events are missing makes all ids be read again")
    func missingEvents() async throws {
        let bench = try await Bench()
        await bench.known.update()
        let id = try await bench.add()
        bench.log.isArchived.withLock { $0 = true }
        await bench.known.update()
        #expect(bench.known.mayExist(bench.stranger))
        await bench.known.update()
        #expect(bench.known.mayExist(id))
        #expect(!bench.known.mayExist(bench.stranger))
    }

    /// Registrations on any node, failing reads, and a jumping clock, in random order.
    @Test("a device that existed at the last reading is never unknown", arguments: 0..<20 as Range<UInt64>)
    func property(seed: UInt64) async throws {
        let bench = try await Bench()
        let random = SeededRandom(seed: seed)
        var (read, later) = ([DeviceID](), [DeviceID]())
        for _ in 0..<60 {
            switch random.below(10) {
            case 0..<4: later.append(try await bench.add(random.below(2) == 0 ? .registered : .pending))
            case 4:
                let id = try await bench.add()
                bench.known.insert(id)
                read.append(id)
            case 5:
                await bench.stores.fail([.link, .events, .knownIDs][random.below(3)])
                await bench.known.update()
                await bench.stores.recover()
            case 6: bench.clock.advance(Int64(random.below(13)) - 3)
            default:
                await bench.known.update()
                read += later
                later = []
                #expect(!bench.known.mayExist(bench.stranger))
            }
            for id in read { #expect(bench.known.mayExist(id)) }
        }
    }
}
