import AuthContract
import Bytes
import Foundation
import StoreConformance
import Testing

@testable import AuthService

/// Old events of the audit log move to files, and the whole log stays one chain.
@Suite final class AuditArchiveTests {
    private let world: World
    private let folder: AuditArchiveFolder
    private let archiver: AuditArchiver
    private let service: AuthService

    init() async throws {
        world = try await World()
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("audit-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        folder = AuditArchiveFolder(url.path)
        var service = world.service
        service.auditTrail.folder = folder
        self.service = service
        archiver = AuditArchiver(of: service, to: folder, keepDays: 30)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.path) }

    private func append(_ count: Int) async throws {
        for _ in 0..<count {
            try await world.stores.append(AuditEvent(.securityEvent, at: world.clock.now, actor: "test"))
        }
    }

    /// Appends older and newer events, archives the older ones, and returns the archive.
    private func archive() async throws -> StoredAuditArchive {
        try await append(20)
        world.clock.advance(40 * 86_400)
        try await append(5)
        while try await archiver.archiveNext() {}
        return try #require(try await world.stores.auditArchives().first)
    }

    private var files: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()) ?? []
    }

    /// Changes the text of the only archive file.
    private func rewrite(_ change: (inout String) -> Void) throws {
        let path = folder.path + "/" + (try #require(files.first))
        var text = try String(contentsOfFile: path, encoding: .utf8)
        change(&text)
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    @Test func `old events are in one signed file, and the chain is whole across the seam`() async throws {
        let early = try await service.auditTrail.head()
        try await append(3)
        let middle = try await service.auditTrail.head()
        let archive = try await archive()
        #expect(archive.first == 1 && archive.last == middle.sequence + 20)
        #expect(files == ["audit-000000000001-\(String(archive.last).leftPadded).jsonl"])
        let rest = try await world.stores.events(app: nil, device: nil, before: nil, limit: 1000)
        #expect(rest.map(\.sequence) == (1...5).map { archive.last + $0 }.reversed())
        for head in [nil, early, middle, try await service.auditTrail.head()] {
            #expect(try await service.auditTrail.verify(against: head) == .intact)
        }
        // `middle` is an audit head whose event is archived now. The service may have logged the head before that.
        #expect(try await service.auditTrail.compare(middle) == .intact)
        #expect(try await !archiver.archiveNext())
    }

    @Test func `few events wait until they are a day older`() async throws {
        try await append(3)
        world.clock.advance(30 * 86_400 + 3600)
        try await append(1)
        #expect(try await !archiver.archiveNext())
        #expect(files.isEmpty)
        world.clock.advance(86_400)
        #expect(try await archiver.archiveNext())
        #expect(files.count == 1)
    }

    @Test func `few events wait no longer if the first one is dated ahead`() async throws {
        world.clock.advance(400 * 86_400)
        try await append(1)
        world.clock.advance(-400 * 86_400)
        try await append(2)
        world.clock.advance(31 * 86_400 + 3600)
        try await append(1)
        #expect(try await archiver.archiveNext())
    }

    @Test func `a changed, cut or missing file is found`() async throws {
        let archive = try await archive()
        let path = folder.file(first: archive.first, last: archive.last)
        let original = try String(contentsOfFile: path, encoding: .utf8)
        func verdict(_ change: (inout String) -> Void) async throws -> AuditCheckResult {
            try rewrite(change)
            let result = try await service.auditTrail.verify()
            try rewrite { $0 = original }
            return result
        }
        #expect(try await verdict { $0 = $0.replacing("\"sequence\":3,", with: "\"sequence\":4,") } == .brokenLink(3))
        #expect(try await verdict { $0 = $0.replacing("\"actor\":\"test\"", with: "\"actor\":\"tess\"") } != .intact)
        #expect(try await verdict { $0 = String($0.dropLast(200)) } == .archiveBroken(1))
        #expect(try await verdict { $0 = "" } == .archiveBroken(1))
        #expect(try await verdict { $0 = $0.replacing("audit-archive-v1", with: "audit-head-v1") } == .archiveBroken(1))
        #expect(try await service.auditTrail.verify() == .intact)
        try FileManager.default.removeItem(atPath: path)
        #expect(try await service.auditTrail.verify() == .archiveMissing(1))
        #expect(try await world.service.auditTrail.verify() == .archiveMissing(1))
    }

    @Test func `archiving events during a check is not reported as a broken chain`() async throws {
        func link(_ sequence: Int64) -> AuditLink { AuditLink(sequence: sequence, hash: [UInt8(sequence)]) }
        /// Checks a log. Each time that the check reads where the log begins, it gets the next of `starts`. Until event 20 is
        /// archived, the event after the first event of the log is missing.
        func check(_ starts: [AuditChain.Start]) async throws -> Int64? {
            let rest = Locked(starts[...])
            return try await AuditChain.firstBrokenLink(from: { () async throws(StoreError) in
                rest.withLock { $0.count > 1 ? $0.removeFirst() : $0[$0.startIndex] }
            }) { (link, archived) async throws(StoreError) in
                archived.sequence < 20 ? .broken(link.sequence + 1) : .end
            }
        }
        let early = AuditChain.Start(archived: link(10), first: link(3))
        let later = AuditChain.Start(archived: link(10), first: link(8))
        let done = AuditChain.Start(archived: link(20), first: link(21))
        #expect(try await check([early, later, done]) == nil)
        #expect(try await check([early, later]) == 9)
        #expect(try await check([early]) == 4)
    }

    @Test func `a FIFO in the place of a file is found, and not waited for`() async throws {
        let archive = try await archive()
        let path = folder.file(first: archive.first, last: archive.last)
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        #expect(try await service.auditTrail.verify() == .archiveBroken(1))
    }

    @Test func `an event that a wrong clock dated ahead does not keep those after it`() async throws {
        try await append(2)
        world.clock.advance(400 * 86_400)
        try await append(1)
        world.clock.advance(-400 * 86_400)
        let archive = try await archive()
        #expect(archive.last >= 23)
    }

    @Test func `a file with other events is kept, and nothing is archived`() async throws {
        let first = try await service.auditTrail.head().sequence
        let path = folder.file(first: 1, last: first + 20)
        try "another history\n".write(toFile: path, atomically: false, encoding: .utf8)
        await #expect(throws: StoreError.self) { try await archive() }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "another history\n")
        #expect(files.count == 1)
        #expect(try await world.stores.auditArchives().isEmpty)
        let events = try await world.stores.events(app: nil, device: nil, before: nil, limit: 1000)
        #expect(events.last?.sequence == 1)
    }

    @Test func `the file of an archive that was not recorded is used later, with its own seal`() async throws {
        await world.stores.fail(.addArchive)
        await #expect(throws: StoreError.self) { try await archive() }
        await world.stores.recover()
        world.clock.advance(60)
        #expect(try await archiver.archiveNext())
        #expect(files.count == 1)
        #expect(try await service.auditTrail.verify() == .intact)
    }

    @Test func `an unfinished file is removed an hour later`() async throws {
        let (old, new) = (folder.path + "/audit-1.jsonl.a.part", folder.path + "/audit-1.jsonl.b.part")
        for path in [old, new] { try "".write(toFile: path, atomically: false, encoding: .utf8) }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -4000)], ofItemAtPath: old)
        await folder.removeUnfinished()
        #expect(files == ["audit-1.jsonl.b.part"])
    }

    @Test func `a head of the log is not accepted as the seal of an archive`() async throws {
        try await append(5)
        let head = try await service.auditTrail.head()
        // An attacker who can write the database pretends that the first events are archived.
        let forged = StoredAuditArchive(first: 1, last: head.sequence, hash: head.hash, seal: head.description)
        #expect(try await world.stores.add(forged))
        #expect(try await service.auditTrail.verify() == .archiveBroken(1))
    }

    @Test func `an archive that this service did not seal does not explain a cut log`() async throws {
        try await append(5)
        let before = try await service.auditTrail.head()
        let forged = AuditHead(
            sequence: before.sequence + 9, at: before.at, hash: before.hash, signature: before.signature)
        let row = StoredAuditArchive(
            first: 1, last: forged.sequence, hash: forged.hash, seal: "\(forged)")
        #expect(try await world.stores.add(row))
        let beyond = AuditHead(
            sequence: before.sequence + 1, at: before.at, hash: before.hash, signature: before.signature)
        #expect(try await service.auditTrail.compare(beyond) == .cut(last: before.sequence))
    }

    @Test func `a crash between the file, its seam and the removal loses nothing`() async throws {
        for call in [MemoryStores.Call.addArchive, .removeArchivedEvents] {
            try await append(20)
            world.clock.advance(40 * 86_400)
            try await append(2)
            await world.stores.fail(call)
            _ = try? await archiver.archiveNext()
            await world.stores.recover()
            #expect(try await service.auditTrail.verify() == .intact)
            while try await archiver.archiveNext() {}
            #expect(try await service.auditTrail.verify() == .intact)
        }
        #expect(try await world.stores.auditArchives().count >= 2)
    }

    @Test func `a folder that is not there changes nothing`() async throws {
        try await append(20)
        world.clock.advance(40 * 86_400)
        try await append(2)
        let archiver = AuditArchiver(of: service, to: AuditArchiveFolder("/nonexistent"), keepDays: 30)
        await #expect(throws: StoreError.self) { try await archiver.archiveNext() }
        #expect(try await world.stores.auditArchives().isEmpty)
        #expect(try await world.stores.events(app: nil, device: nil, before: nil, limit: 1000).last?.sequence == 1)
    }

    @Test func `an archive stays genuine after a rotation of the service key`() async throws {
        _ = try await archive()
        let key = try #require(ServiceKey([[UInt8](repeating: 9, count: 32), World.serviceKey]))
        let rules = ServiceKeyRules(store: world.stores, key: key, clock: world.clock)
        _ = try await rules.rotate(actor: "test", lock: FreeLock())
        let new = try #require(ServiceKey([UInt8](repeating: 9, count: 32)))
        var trail = AuditTrail(log: world.stores, archives: world.stores, key: new, clock: world.clock)
        trail.folder = folder
        #expect(try await trail.verify() == .intact)
    }
}

extension String {
    /// The text, padded with zeros to twelve digits.
    fileprivate var leftPadded: String { String(repeating: "0", count: max(0, 12 - count)) + self }
}
