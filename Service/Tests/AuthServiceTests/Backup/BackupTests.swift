import AuthContract
import StrictJSON
import Testing

@testable import AuthService

/// A backup is restored exactly as it was written, or not at all.
struct BackupTests {
    private let key: ServiceKey

    init() throws { key = try #require(ServiceKey([UInt8](repeating: 1, count: 32))) }

    // MARK: What comes back

    @Test func `rows of every kind come back in their order, over many frames`() throws {
        var sample = try BackupSample(key: key)
        let long = String(repeating: "\u{1F511}\n\"\\\u{0}", count: 40_000)
        try sample.add([.text("com.example.app"), .text(long)], of: .apps)
        try sample.add([.text("k"), .bytes([0, 255]), .integer(.min), .null], of: .signingKeys)
        try sample.add([.text("k"), .bytes([]), .integer(.max), .integer(0)], of: .signingKeys)
        try sample.add([.text(key.checks[0].text)], of: .keyChecks)
        try sample.addEvents(3)
        let bytes = try sample.finish()
        #expect(bytes.count > 5 * BackupFrame.size)
        let (summary, rows) = try BackupSample.read(bytes, key: key)
        #expect(rows.map(\.table) == sample.rows.map(\.table))
        #expect(rows.map(\.cells) == sample.rows.map(\.cells))
        #expect(summary.rows == [.apps: 1, .signingKeys: 2, .keyChecks: 1, .audit: 3])
        #expect(summary.contents == sample.contents)
        #expect(summary.keyChecks == key.checks)
    }

    @Test func `a backup that ends at the end of a frame is whole`() throws {
        func backup(_ extra: Int) throws -> [UInt8] {
            var sample = try BackupSample(key: key)
            try sample.add([.text("a"), .text(String(repeating: "x", count: extra))], of: .apps)
            return try sample.finish()
        }
        let short = try backup(0)
        let header = try #require(short.firstIndex(of: UInt8(ascii: "\n"))) + 1
        let left = 2 * BackupFrame.size - (short.count - header - BackupFrame.tagSize)
        for extra in left - 1...left + 1 {
            let bytes = try backup(extra)
            let frames = extra > left ? 3 : 2
            #expect(bytes.count == header + frames * BackupFrame.tagSize + 2 * BackupFrame.size + extra - left)
            #expect(try BackupSample.read(bytes, key: key).summary.rows == [.apps: 1])
        }
    }

    @Test func `the same rows give other bytes each time, and none of them in the clear`() throws {
        let backups = try (0..<2).map { _ in
            var sample = try BackupSample(key: key)
            try sample.add([.text("com.example.app"), .text("secret")], of: .apps)
            try sample.addEvents(1)
            return try sample.finish()
        }
        #expect(backups[0] != backups[1])
        for backup in backups {
            for word in ["secret", "com.example.app", "audit"] {
                #expect(backup.firstRange(of: Array(word.utf8)) == nil)
            }
        }
    }

    // MARK: Keys and versions

    @Test func `only the service key that sealed a backup opens it, also as one of several`() throws {
        let bytes = try BackupSample.small(key: key)
        let other = [UInt8](repeating: 2, count: 32)
        #expect(BackupSample.refusal(bytes, key: try #require(ServiceKey(other)))?.code == .anotherKey)
        let both = try #require(ServiceKey([other, [UInt8](repeating: 1, count: 32)]))
        #expect(BackupSample.refusal(bytes, key: both) == nil)
    }

    @Test(arguments: ["2", "10", "", "1x"]) func `another format is of a newer version`(_ format: String) throws {
        let bytes = try BackupSample.small(key: key)
        let old = Array("synheart-auth-backup/1 ".utf8)
        try #require(bytes.starts(with: old))
        let new = Array("synheart-auth-backup/\(format) ".utf8) + bytes.dropFirst(old.count)
        #expect(BackupSample.refusal(new, key: key)?.code == .newerVersion)
    }

    @Test(arguments: ["fingerprints", "apps"]) func `an unknown table or column is of a newer version`(
        _ table: String
    ) throws {
        var tables = BackupWriter.tables
        tables[table] = ["app_id", "record", "colour"]
        var sample = try BackupSample(key: key, tables: tables)
        #expect(BackupSample.refusal(try sample.finish(), key: key)?.code == .newerVersion)
    }

    @Test func `an older backup lacks tables, and columns that may be null`() throws {
        var tables = BackupWriter.tables
        tables["evidence"] = nil
        tables["signing_keys"] = ["created_at", "id", "sealed_key"]
        var sample = try BackupSample(key: key, tables: tables)
        try sample.writer.add(line: ["signing_keys", 7, "k", "AQI="])
        try sample.writer.add(line: .object(JSONObject([("rows", .object(JSONObject([("signing_keys", 1)])))])))
        try sample.writer.finishFrames()
        let (_, rows) = try BackupSample.read(sample.bytes.contents, key: key)
        #expect(rows.map(\.cells) == [[.text("k"), .bytes([1, 2]), .integer(7), .null]])
    }

    // MARK: Contents that no writer of this version makes

    @Test(
        arguments: [
            ["apps", "a"], ["apps", "a", 1], ["apps", "a", .null], ["apps", "a", "b", "c"], ["nothing", "a"], [], [1],
            ["signing_keys", "k", "not base64", 1, .null], ["signing_keys", "k", "AQI=", "1", .null], "apps", .null,
        ] as [JSONValue]) func `a malformed row is refused`(_ line: JSONValue) throws
    {
        var sample = try BackupSample(key: key)
        try sample.writer.add(line: line)
        #expect(BackupSample.refusal(try sample.finish(), key: key)?.code == .damaged)
    }

    @Test func `a missing row, a row too many and lines after the end are refused`() throws {
        for count in [0, 2] {
            var sample = try BackupSample(key: key)
            try sample.add([.text("a"), .text("b")], of: .apps)
            try sample.writer.add(
                line: .object(JSONObject([("rows", .object(JSONObject([("apps", .integer(count))])))])))
            try sample.writer.finishFrames()
            #expect(BackupSample.refusal(sample.bytes.contents, key: key)?.code == .damaged)
        }
        var sample = try BackupSample(key: key)
        try sample.writer.add(line: .object(JSONObject([("rows", .object(JSONObject()))])))
        #expect(BackupSample.refusal(try sample.finish(), key: key)?.code == .damaged)
        let unfinished = try BackupSample(key: key)
        var writer = unfinished.writer
        try writer.finishFrames()
        #expect(BackupSample.refusal(unfinished.bytes.contents, key: key)?.code == .damaged)
    }

    @Test func `an audit log that is changed, has a gap, or lacks its head is refused`() throws {
        var changed = try BackupSample(key: key, events: 3)
        try changed.addEvents(3) { $0 == 2 ? .integer(5) : nil }
        #expect(BackupSample.refusal(try changed.finish(), key: key)?.code == .brokenAudit)
        var short = try BackupSample(key: key, events: 3)
        try short.addEvents(2)
        #expect(BackupSample.refusal(try short.finish(), key: key)?.code == .brokenAudit)
        // A backup may have events after the one that its audit head names.
        var longer = try BackupSample(key: key, events: 3)
        try longer.addEvents(5)
        #expect(BackupSample.refusal(try longer.finish(), key: key) == nil)
    }
}
