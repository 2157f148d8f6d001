import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// Each check of the journal's files, with values on both sides of its boundary.
struct ClaimJournalGuardTests {
    private let start = JournalBench.start
    private let bench: JournalBench

    init() throws { bench = try JournalBench() }

    /// A journal with claims, as left by a killed process.
    private func abandoned(_ count: Int = 10) async throws -> (claims: [ReplayClaim], note: JournalNote) {
        let claims = bench.claims(count)
        let journal = try bench.open()
        for claim in claims { #expect(try await journal.claim([claim]) == .claimed) }
        let note = journal.note
        await journal.abandon()
        return (claims, note)
    }

    private func isLost(_ boot: String = "first boot", expecting: JournalExpectation = .nothing) async throws -> Bool {
        let journal = try bench.open(boot: boot, expecting: expecting)
        let outcome = try await journal.claim(bench.claims(), at: start + 60, now: start)
        await journal.close()
        return outcome != .claimed
    }

    // MARK: Records

    @Test func `every kind of record is read as it was written, under its own seed only`() throws {
        let records = [
            ClaimRecord.claim(ReplayClaim(high: 1, low: 2), expiry: 3), .clock(-5, monotonic: 6), .purged(to: .min),
            .purged(to: 7, restoredAt: 8),
            .loss(.init(first: 1, last: 2, isOpen: false)), .loss(.init(first: 1, last: 2, isOpen: true)), .seal,
        ]
        for record in records {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: ClaimRecord.size, alignment: 8)
            defer { memory.deallocate() }
            memory.initializeMemory(as: UInt8.self, repeating: 0)
            try record.write(to: #require(memory.baseAddress), seed: 42)
            let bytes = UnsafeRawBufferPointer(memory)
            let read = try #require(ClaimRecord(bytes[...], seed: 42))
            #expect(read.kind == record.kind && read.high == record.high && read.low == record.low)
            #expect(read.expiry == record.expiry)
            #expect(ClaimRecord(bytes[...], seed: 43) == nil)
            #expect(ClaimRecord(bytes[..<23], seed: 42) == nil)
            #expect(!ClaimRecord.isUnwritten(bytes[...]))
        }
        #expect(Set(records.map(\.kind)).count == ClaimRecord.Kind.allCases.count)
    }

    /// The bytes must not change, because the next version reads the files of this version.
    @Test(arguments: [
        (
            ClaimRecord.claim(ReplayClaim(high: 0x0102_0304_0506_0708, low: .max), expiry: 0x0A0B_0C0D),
            "0807060504030201ffffffffffffffff0d0c0b0a18beca29"
        ), (.clock(-5, monotonic: 6), "fbffffffffffffff0600000000000000000000008d211c8b"),
        (.purged(to: .min), "00000000000000800000000000000000000000004fb1fec0"),
        (
            .loss(.init(first: 0x0102_0304_0506_0708, last: -1, isOpen: false)),
            "0807060504030201ffffffffffffffff0000000064146821"
        ), (.loss(.init(first: 1, last: 2, isOpen: true)), "0100000000000000020000000000000000000000c3dba26f"),
        (.seal, "000000000000000000000000000000000000000088db19a9"),
    ])
    func `each kind of record has its bytes`(_ record: ClaimRecord, _ bytes: String) throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: ClaimRecord.size, alignment: 8)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        try record.write(to: #require(memory.baseAddress), seed: 42)
        #expect(Hexadecimal.encode(Array(memory)) == bytes)
    }

    @Test func `a header has its bytes`() {
        let header = header { ($0.sequence, $0.seed) = (0x0102_0304_0506_0708, .max - 1) }
        #expect(
            Hexadecimal.encode(header.bytes)
                == "5379436c61696d7302000000000000000807060504030201feffffffffffffff52062148cd12180852d23ca3b2874e43"
                + "00000000000000000000000000000000000000000000000000000000000000000000000000000000439283336d1fa470")
    }

    @Test func `a record is unwritten if its last word is zero`() {
        let word = [UInt8](repeating: 0, count: 8)
        for place in 16..<24 {
            var bytes = [UInt8](repeating: 0, count: 24)
            bytes[place] = 1
            bytes.withUnsafeBytes { #expect(!ClaimRecord.isUnwritten($0[...]), "\(place)") }
        }
        let bytes = [UInt8](repeating: 1, count: 16) + word + [1]
        bytes.withUnsafeBytes { #expect(ClaimRecord.isUnwritten($0[...])) }
    }

    // MARK: Headers

    private func header(_ change: (inout SegmentHeader) -> Void) -> SegmentHeader {
        var header = SegmentHeader(sequence: 1, opening: 0, boot: BootIdentity("first boot"))
        change(&header)
        return header
    }

    @Test(arguments: [UInt64(3), .max])
    func `a segment of another version is refused and not deleted`(_ version: UInt64) throws {
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        let file = "\(bench.path)/claims-00000000000000000001"
        try Data(header { $0.version = version }.bytes).write(to: URL(fileURLWithPath: file))
        let error = #expect(throws: StoreOpenError.self) { try bench.open() }
        #expect(error?.code == .newerVersion)
        #expect(FileManager.default.fileExists(atPath: file))
    }

    @Test func `a header is read unchanged, and at no other length`() throws {
        let header = header { $0.sequence = 77 }
        let read = try SegmentHeader(header.bytes)
        #expect(read.sequence == 77 && read.seed == header.seed && read.boot == header.boot && read.version == 2)
        #expect(read.purgedTo == .min && read.loss.intervals == [])
        for bytes in [Array(header.bytes.dropLast()), header.bytes + [0], []] {
            #expect(throws: SegmentHeader.ReadError.damaged) { try SegmentHeader(bytes) }
        }
    }

    @Test(arguments: 0..<SegmentHeader.size) func `a header with any byte changed is damaged`(_ place: Int) {
        var bytes = header { _ in }.bytes
        bytes[place] ^= 0x80
        #expect(throws: SegmentHeader.ReadError.damaged) { try SegmentHeader(bytes) }
    }

    @Test func `a header of zeros after its name is damaged`() {
        let bytes = Array("SyClaims".utf8) + [UInt8](repeating: 0, count: SegmentHeader.size - 8)
        #expect(throws: SegmentHeader.ReadError.damaged) { try SegmentHeader(bytes) }
        // Version 0 does not exist. Everything else in this header is valid.
        #expect(throws: SegmentHeader.ReadError.damaged) { try SegmentHeader(header { $0.version = 0 }.bytes) }
    }

    @Test func `a segment under another one's name is a loss of history`() async throws {
        _ = try await abandoned()
        try FileManager.default.moveItem(
            atPath: bench.segments()[0], toPath: "\(bench.path)/claims-00000000000000000005")
        #expect(try await isLost())
    }

    @Test func `a header of zeros before written records is a loss of history`() async throws {
        _ = try await abandoned()
        try bench.change(bench.segments()[0]) {
            $0.replaceSubrange(0..<SegmentHeader.size, with: Data(count: SegmentHeader.size))
        }
        #expect(try await isLost())
    }

    // MARK: A folder that is moved

    @Test func `a journal whose folder was moved makes no claims, so that a second one cannot make the same`()
        async throws
    {
        let monotonic = Locked<Int64>(100)
        let bench = try JournalBench(monotonic: monotonic)
        let (journal, claims, away) = (try bench.open(), bench.claims(), bench.path + "-away")
        #expect(try await journal.claim(claims) == .claimed)
        try FileManager.default.moveItem(atPath: bench.path, toPath: away)
        monotonic.withLock { $0 += 1 }
        let second = try bench.open(expecting: .note(journal.note))
        await #expect(throws: StoreError.self) { try await journal.claim(bench.claims(), at: start + 1) }
        guard case .historyLost = try await second.claim(claims, now: start + 1) else {
            Issue.record("the second journal accepted a claim of the first")
            return
        }
        let ofSecond = bench.claims()
        #expect(try await second.claim(ofSecond, at: start + 121) == .claimed)
        let note = second.note
        await second.close()
        // The first journal is back in its place, but lacks the second one's claims. It makes no claims, and the next start finds the loss.
        try FileManager.default.removeItem(atPath: bench.path)
        try FileManager.default.moveItem(atPath: away, toPath: bench.path)
        monotonic.withLock { $0 += 1 }
        await #expect(throws: StoreError.self) { try await journal.claim(ofSecond, at: start + 121) }
        #expect(try await journal.claim(claims, now: start + 1) == .taken(claims[0]))
        await journal.close()
        let third = try bench.open(at: start + 122, expecting: .note(note))
        guard case .historyLost = try await third.claim(ofSecond, at: start + 121, now: start + 122) else {
            Issue.record("a claim of the second journal was accepted again")
            return
        }
        await third.close()
    }

    @Test func `a journal whose folder was moved removes no file of the one in its place`() async throws {
        var bench = bench
        bench.settings.segmentSeconds = 10
        bench.settings.syncInterval = .milliseconds(1)
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims(), at: start + 11) == .claimed)
        // Maintenance made the next segment, which no claim uses yet.
        await eventually { (try? bench.segments().count) == 2 }
        try FileManager.default.moveItem(atPath: bench.path, toPath: bench.path + "-away")
        let second = try bench.open(at: start + 11, expecting: .note(journal.note))
        let segments = try bench.segments()
        await journal.close()
        #expect(try bench.segments() == segments)
        #expect(!journal.isInPlace && second.isInPlace)
        await second.close()
    }

    @Test func `a lock that is a link is in its place`() async throws {
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: bench.path + ".lock"))
        try FileManager.default.createSymbolicLink(
            atPath: bench.path + "/lock", withDestinationPath: bench.path + ".lock")
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims()) == .claimed)
        await journal.close()
    }

    // MARK: Damage

    @Test(arguments: ["first boot", "second boot"])
    func `a damaged record before a whole one is a loss of history, after a loss of power too`(
        _ boot: String
    ) async throws {
        let note = try await abandoned().note
        // Changes the second to last record.
        let offset = note.length - 2 * ClaimRecord.size
        try bench.change(bench.segments()[0]) { $0[offset] ^= 1 }
        #expect(try await isLost(boot))
    }

    @Test func `an unfinished record before a whole one is a loss of history`() async throws {
        let note = try await abandoned().note
        let offset = note.length - 2 * ClaimRecord.size + 16
        try bench.change(bench.segments()[0]) { $0.replaceSubrange(offset..<offset + 8, with: Data(count: 8)) }
        #expect(try await isLost())
    }

    @Test func `bytes after the last record are a loss of history, if power was not lost`() async throws {
        let note = try await abandoned().note
        try bench.change(bench.segments()[0]) { $0[note.length + ClaimRecord.size] = 1 }
        #expect(try await isLost())
    }

    @Test func `bytes after the last record are cut off, if power was lost`() async throws {
        let note = try await abandoned().note
        try bench.change(bench.segments()[0]) { $0[note.length + ClaimRecord.size] = 1 }
        #expect(try await !isLost("second boot"))
    }

    @Test func `records that end at a read boundary are all read`() async throws {
        // One read returns 40,000 records.
        var bench = bench
        bench.settings.segmentRecords = 60_000
        let journal = try bench.open()
        let claims = bench.claims(45_000)
        for batch in stride(from: 0, to: claims.count, by: 1000) {
            #expect(try await journal.claim(Array(claims[batch..<batch + 1000])) == .claimed)
        }
        await journal.abandon()
        let again = try bench.open()
        #expect(again.size.live == claims.count)
        for claim in claims[39_900..<40_100] { #expect(try await again.claim([claim]) == .taken(claim)) }
        await again.close()
    }

    // MARK: The database's note

    @Test func `an older journal is a loss of history: fewer segments`() async throws {
        var note = try await abandoned().note
        note.sequence += 1
        note.length = 0
        #expect(try await isLost(expecting: .note(note)))
    }

    @Test func `an older journal is a loss of history: fewer records`() async throws {
        var note = try await abandoned().note
        note.length += 1
        #expect(try await isLost(expecting: .note(note)))
    }

    @Test func `the journal of another machine is a loss of history, although its number is larger`() async throws {
        // A copy of the database, without the journal, ran elsewhere and accepted requests.
        let elsewhere = try bench.open(expecting: .kept)
        let note = elsewhere.note
        await elsewhere.close()
        try FileManager.default.removeItem(atPath: bench.path)
        var own = try await abandoned().note
        for _ in 0..<3 {
            let journal = try bench.open()
            own = journal.note
            await journal.close()
        }
        #expect(own.sequence > note.sequence && own.opening != note.opening)
        #expect(try await isLost(expecting: .note(note)))
    }

    @Test func `the journal of a copy of database and journal is a loss of history in place of the own one`()
        async throws
    {
        _ = try await abandoned()
        let copy = bench.path + "-copy"
        try FileManager.default.copyItem(atPath: bench.path, toPath: copy)
        let own = try bench.open()
        let note = own.note
        await own.close()
        #expect(try await !isLost(expecting: .note(note)))
        try FileManager.default.removeItem(atPath: bench.path)
        try FileManager.default.moveItem(atPath: copy, toPath: bench.path)
        for _ in 0..<3 { await (try bench.open()).close() }
        #expect(try await isLost(expecting: .note(note)))
    }

    @Test func `a journal without an id is a loss of history only if the database noted an id`() async throws {
        var note = try await abandoned().note
        let file = try JournalFolder(bench.path).path(of: note.sequence)
        var bytes = try #require(FileManager.default.contents(atPath: file))
        var header = try SegmentHeader(Array(bytes.prefix(SegmentHeader.size)))
        header.opening = 0
        bytes.replaceSubrange(..<SegmentHeader.size, with: header.bytes)
        try bytes.write(to: URL(fileURLWithPath: file))
        let known = note
        note.opening = 0
        #expect(try await !isLost(expecting: .note(note)))
        #expect(try await isLost(expecting: .note(known)))
    }

    @Test func `a journal of before a restore is a loss of history, also in place of the new one`() async throws {
        let restored = JournalNote.restored(at: JournalBench.start, lastReading: JournalBench.start)
        let journal = try bench.open(expecting: .note(restored))
        let note = journal.note
        await journal.close()
        try FileManager.default.removeItem(atPath: bench.path)
        // The journal from before the restore may have more segments and records than the new one. So the new journal begins with a
        // very high sequence number, which shows that it is newer.
        _ = try await abandoned()
        #expect(try await isLost(expecting: .note(note)))
        #expect(note.sequence > 1 << 40)
    }

    @Test func `a journal that is lost soon after a restore leaves the reading of the restore in its note`()
        async throws
    {
        let (start, monotonic) = (JournalBench.start, Locked<Int64>(0))
        let bench = try JournalBench(monotonic: monotonic)
        let journal = try bench.open(expecting: .note(.restored(at: start, lastReading: start - 86_400)))
        let note = journal.note
        await journal.close()
        try FileManager.default.removeItem(atPath: bench.path)
        await (try bench.open(at: start, expecting: .note(note))).close()
        // At the first start, the clock was an hour behind.
        let right = try bench.open(at: start + 3600, expecting: .note(note))
        guard case .historyLost = try await right.claim(bench.claims(), at: start + 3660, now: start + 3600) else {
            Issue.record("a request of before the restore was accepted")
            return
        }
        await right.close()
    }

    @Test func `a journal as new as its record or newer is whole`() async throws {
        var note = try await abandoned().note
        #expect(try await !isLost(expecting: .note(note)))
        note.length = 0
        #expect(try await !isLost(expecting: .note(note)))
        note.sequence = 0
        note.length = .max
        #expect(try await !isLost(expecting: .note(note)))
    }

    @Test func `an unreadable record of the journal is a loss of history`() async throws {
        _ = try await abandoned()
        #expect(try await isLost(expecting: .unreadable))
        #expect(try await isLost(expecting: .kept), "a loss is remembered")
    }

    @Test func `a journal recorded by an earlier version is whole`() async throws {
        _ = try await abandoned()
        #expect(try await !isLost(expecting: .kept))
    }

    @Test func `recorded losses stay, also without the journal`() async throws {
        var note = try await abandoned().note
        note.loss.add(from: start.seconds + 5000, to: start.seconds + 5600, isOpen: false)
        try FileManager.default.removeItem(atPath: bench.path)
        let journal = try bench.open(expecting: .note(note))
        #expect(
            try await journal.claim(bench.claims(), at: start + 5100, now: start + 5100)
                == .historyLost(retryAfter: 501))
        await journal.close()
    }

    // MARK: Files

    @Test func `a write that the disk refuses is an error`() throws {
        let full = try JournalFile("/dev/full")
        #expect(throws: SystemError.self) { try full.write([1, 2, 3][...], at: 0) }
    }

    @Test func `what the system refuses is an error`() throws {
        let device = try JournalFile("/dev/full")
        #expect(throws: SystemError.self) { try device.synchronize() }
        #expect(throws: SystemError.self) { try device.allocate(100) }
        #expect(throws: SystemError.self) { try device.truncate(to: 100) }
        #expect(throws: SystemError.self) { _ = try device.map(4096) }
        #expect(throws: SystemError.self) { try JournalFile.synchronizeFolder("/proc") }
        #expect(throws: SystemError.self) { try JournalFile.synchronizeFolder("\(bench.path)/missing") }
        #expect(throws: SystemError.self) { try JournalFile("\(bench.path)/missing") }
        #expect(throws: SystemError.self) { try JournalFile.locked("\(bench.path)/missing/lock") }
        #expect(!JournalFile.isLocked("\(bench.path)/missing"))
    }

    @Test func `a lock has one holder, which only a mark shows to others`() throws {
        let path = "\(bench.folder.path)/lock"
        for marking in [true, false] {
            let first = try #require(try JournalFile.locked(path, marking: marking))
            #expect(try JournalFile.locked(path) == nil)
            #expect(JournalFile.isLocked(path) == marking)
            first.unlock()
            #expect(!JournalFile.isLocked(path))
            try #require(try JournalFile.locked(path)).unlock()
        }
    }

    @Test func `a segment's file has the length and the name that were asked for`() throws {
        let folder = try JournalFolder(bench.path)
        _ = try JournalSegment(
            SegmentHeader(sequence: 1, opening: 0, boot: BootIdentity("boot")), capacity: 5000, in: folder)
        let file = "\(bench.path)/claims-00000000000000000001"
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int == 5000)
        #expect(folder.path(of: .max) == "\(bench.path)/claims-18446744073709551615")
        #expect(try folder.sequences() == [1])
        #expect(throws: SystemError.self) {
            _ = try JournalSegment(
                SegmentHeader(sequence: 1, opening: 0, boot: BootIdentity("boot")), capacity: 5000, in: folder)
        }
        #expect(try folder.sequences() == [1], "a segment that is there stays")
    }

    @Test func `a failed read is an error, the end of a file is not`() throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
        defer { buffer.deallocate() }
        // No memory is mapped at the lowest addresses, so reading there fails.
        let memory = try JournalFile("/proc/self/mem")
        #expect(throws: SystemError.self) { try memory.read(into: buffer, at: 0) }
        let path = "\(bench.folder.path)/short"
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
        let short = try JournalFile(path)
        #expect(try short.read(into: buffer, at: 0) == 3)
        #expect(try short.read(into: buffer, at: 3) == 0)
        try short.write([4, 5][...], at: 2)
        try short.write([6][...], at: 4)
        try short.write([], at: 4)
        #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == [1, 2, 4, 5, 6])
    }

    @Test func `a file that is there is not made again`() throws {
        let path = "\(bench.folder.path)/once"
        _ = try JournalFile(path, creating: true)
        #expect(throws: SystemError.self) { try JournalFile(path, creating: true) }
    }

    @Test func `a segment has space for its last record and the seal`() throws {
        let folder = try JournalFolder(bench.path)
        let segment = try JournalSegment(
            SegmentHeader(sequence: 1, opening: 0, boot: BootIdentity("boot")),
            capacity: SegmentHeader.size + 3 * ClaimRecord.size, in: folder)
        #expect(segment.hasRoom(for: 2) && !segment.hasRoom(for: 3))
        segment.append(.claim(ReplayClaim(high: 1, low: 1), expiry: 9))
        #expect(segment.hasRoom(for: 1) && !segment.hasRoom(for: 2))
        segment.append(.claim(ReplayClaim(high: 1, low: 2), expiry: 7))
        #expect(segment.hasRoom(for: 0) && !segment.hasRoom(for: 1))
        #expect(segment.latestExpiry == 9)
        segment.capExpiry(at: 8)
        #expect(segment.latestExpiry == 8)
    }

    // MARK: Version 1

    /// A segment in the format of version 1.
    private func versionOne(
        _ records: [ClaimRecord], purgedTo: Int64 = .min, powerLostAt: Int64 = .min, damagedAt: Int64 = .min
    ) throws {
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        let header = header { $0.version = 1 }
        var words = header.bytes.dropFirst(8).withUnsafeBytes { Array($0.bindMemory(to: UInt64.self)) }
        (words[5], words[6]) = (UInt64(bitPattern: purgedTo), UInt64(bitPattern: powerLostAt))
        words[7] = UInt64(bitPattern: damagedAt)
        words[10] = words.prefix(10).reduce(0) { ClaimRecord.mix($0 ^ $1) }
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: records.count * ClaimRecord.size, alignment: 8)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        for (number, record) in records.enumerated() {
            try record.write(to: #require(memory.baseAddress) + number * ClaimRecord.size, seed: header.seed)
        }
        let bytes =
            Array("SyClaims".utf8) + words.flatMap { word in withUnsafeBytes(of: word.littleEndian) { Array($0) } }
        try Data(bytes + Array(memory)).write(to: URL(fileURLWithPath: "\(bench.path)/claims-00000000000000000001"))
    }

    @Test func `a journal of version 1 is read: its claims, what it purged and what it lost`() async throws {
        let claim = ReplayClaim(high: 1, low: 2)
        let now = start.seconds
        try versionOne(
            [.clock(now, monotonic: 0), .claim(claim, expiry: UInt32(now + 660))], purgedTo: now + 100,
            powerLostAt: now - 300)
        let journal = try bench.open(expecting: .kept)
        #expect(try await journal.claim([claim]) == .taken(claim))
        #expect(try await journal.claim(bench.claims(), at: start - 560, now: start) == .historyLost(retryAfter: 266))
        #expect(try await journal.claim(bench.claims(), at: start - 294, now: start) == .claimed)
        await journal.close()
    }

    @Test func `a version 1 journal that was damaged once refuses up to the future window`() async throws {
        try versionOne([], damagedAt: start.seconds - 300)
        let journal = try bench.open(expecting: .kept)
        #expect(try await journal.claim(bench.claims(), at: start - 240, now: start) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start - 239, now: start) == .claimed)
        await journal.close()
    }

    @Test func `a version 1 segment without records may have had some before a loss of power`() async throws {
        try versionOne([])
        let journal = try bench.open(boot: "second boot", expecting: .kept)
        #expect(try await journal.claim(bench.claims(), at: start + 5, now: start) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start + 6, now: start) == .claimed)
        await journal.close()
    }

    @Test func `what a version 1 journal purged cannot be claimed again`() async throws {
        try versionOne([], purgedTo: start.seconds + 100)
        let journal = try bench.open(expecting: .kept)
        #expect(try await journal.claim(bench.claims(), at: start - 560, now: start) == .expired)
        #expect(try await journal.claim(bench.claims(), at: start - 559, now: start) == .claimed)
        await journal.close()
    }

    @Test func `a version 1 segment without records is whole: its header has the losses`() async throws {
        try versionOne([], powerLostAt: start.seconds - 300)
        let journal = try bench.open(expecting: .kept)
        #expect(try await journal.claim(bench.claims(), at: start - 295, now: start) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start - 294, now: start) == .claimed)
        await journal.close()
    }

    @Test func `a version 1 journal from a clock a year ahead refuses for minutes, not for a year`()
        async throws
    {
        let ahead = start.seconds + 31_536_000
        try versionOne(
            [.clock(ahead, monotonic: 0), .claim(ReplayClaim(high: 1, low: 2), expiry: UInt32(ahead + 660))],
            purgedTo: ahead, powerLostAt: ahead)
        let journal = try bench.open(expecting: .kept)
        #expect(try await journal.claim(bench.claims(), at: start + 720, now: start + 720) == .claimed)
        #expect(try await journal.claim(bench.claims(), at: UnixTime(ahead), now: UnixTime(ahead)) != .claimed)
        await journal.close()
    }
}
