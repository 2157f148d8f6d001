internal import AuthContract
internal import Foundation
internal import StrictJSON

/// The folder with the archives of the audit log: one file for each, with a line of JSON for each event, and the signed head as
/// the last line. Files are never changed or replaced, because they are the only copy of archived events.
public struct AuditArchiveFolder: Sendable {
    /// The path.
    public let path: String

    /// The largest number of events of a file, and the size in bytes after which it ends.
    static let maximumEvents = 10_000
    static let maximumBytes = 16 << 20
    /// The size in bytes above which a file is not read.
    private static let maximumRead = 64 << 20
    /// Seconds after which an unfinished file is treated as abandoned.
    private static let longestWriting: TimeInterval = 3600

    /// The folder at this path. It must exist before an archive is written.
    public init(_ path: String) { self.path = path }

    /// The path of the file with these events.
    func file(first: Int64, last: Int64) -> String { "\(path)/\(Self.name(first: first, last: last))" }

    /// The name of the file with these events, such as `audit-000000000001-000000010000.jsonl`.
    static func name(first: Int64, last: Int64) -> String {
        func padded(_ number: Int64) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, 12 - digits.count)) + digits
        }
        return "audit-\(padded(first))-\(padded(last)).jsonl"
    }

    // MARK: Writing

    /// Writes an archive. When this returns, the file is complete and durable.
    ///
    /// A file of another database, or of the history before a restore, may have the same name. Then this method throws, and does
    /// not change the file.
    ///
    /// - Returns: the seal of the file. It differs from `seal` if the file already exists with the same events, because a process
    ///   crashed before it recorded the archive in the store. The caller must check the signature of the returned seal.
    func add(_ entries: [StoredAuditEntry], sealedBy seal: AuditHead) async throws -> AuditHead {
        guard let first = entries.first, let last = entries.last else { return seal }
        var bytes: [UInt8] = []
        for entry in entries { bytes += Self.line(entry) }
        bytes += JSONValue.object(JSONObject([("seal", .string(seal.description))])).bytes + [UInt8(ascii: "\n")]
        let (path, target) = (path, file(first: first.entry.sequence, last: last.entry.sequence))
        let isNew = try await offloading { [bytes] in try Self.store(bytes, at: target, in: path) }
        guard !isNew else { return seal }
        guard let found = try? await read(first: first.entry.sequence, last: last.entry.sequence),
            found.entries == entries, let existing = try? AuditHead(found.seal), existing.kind == seal.kind,
            existing.sequence == seal.sequence, existing.hash == seal.hash
        else {
            throw StoreError(
                .unavailable,
                "\(target) exists with other events: another database wrote it, or this one before a restore. "
                    + "Move the file, or name another folder in audit.archive")
        }
        return existing
    }

    /// Removes unfinished files that have not changed for `longestWriting` seconds: their processes were killed. Another node
    /// may still be writing a newer unfinished file.
    func removeUnfinished() async {
        let path = path
        await offloading {
            let limit = Date(timeIntervalSinceNow: -Self.longestWriting)
            let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            for name in names where name.hasPrefix("audit-") && name.hasSuffix(".part") {
                let file = "\(path)/\(name)"
                let about = try? FileManager.default.attributesOfItem(atPath: file)
                guard let changed = about?[.modificationDate] as? Date, changed < limit else { continue }
                unlink(file)
            }
        }
    }

    /// One event as a line.
    static func line(_ stored: StoredAuditEntry) -> [UInt8] {
        let entry = stored.entry
        let object = JSONObject([
            ("sequence", .integer(entry.sequence)), ("at", .integer(entry.at)), ("code", .string(entry.code)),
            ("actor", .string(entry.actor)), ("app_id", entry.appID.map { .string($0) } ?? .null),
            ("device_id", entry.deviceID.map { .string($0) } ?? .null), ("detail", .string(entry.detail)),
            ("hash", .string(Hexadecimal.encode(stored.hash))),
        ])
        return JSONValue.object(object).bytes + [UInt8(ascii: "\n")]
    }

    /// - Returns: false if a file with this name exists. That file is not changed.
    private static func store(_ bytes: [UInt8], at target: String, in folder: String) throws -> Bool {
        let temporary = "\(target).\(RandomUUID(from: SystemRandom()).text).part"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("cannot create a file in \(folder)") }
        defer { unlink(temporary) }
        do {
            defer { close(descriptor) }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw failure("cannot write in \(folder)") }
                rest = rest.dropFirst(count)
            }
            guard fsync(descriptor) == 0 else { throw failure("cannot write in \(folder)") }
        }
        // Unlike rename(), link() replaces no file.
        let isNew = link(temporary, target) == 0
        guard isNew || errno == EEXIST else { throw failure("cannot name a file in \(folder)") }
        // Makes the name durable.
        let opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { throw failure("cannot open \(folder)") }
        defer { close(opened) }
        guard fsync(opened) == 0 else { throw failure("cannot write in \(folder)") }
        return isNew
    }

    private static func failure(_ what: String) -> StoreError {
        StoreError(.unavailable, "\(what): \(String(cString: strerror(errno)))")
    }

    // MARK: Reading

    /// Whether the file with these events can be opened.
    func hasFile(first: Int64, last: Int64) async -> Bool {
        let path = file(first: first, last: last)
        return await offloading { access(path, R_OK) == 0 }
    }

    /// The reason why an archive cannot be read.
    enum ReadFailure: Error {
        case missing
        case malformed
    }

    /// The events of an archive, in order, and the seal in its last line.
    func read(first: Int64, last: Int64) async throws(ReadFailure) -> (entries: [StoredAuditEntry], seal: String) {
        let path = file(first: first, last: last)
        // Parse on another thread, because parsing takes so long that it would delay other tasks.
        return try await offloading { () throws(ReadFailure) in try Self.parse(Self.contents(of: path)) }
    }

    private static func contents(of path: String) throws(ReadFailure) -> Data {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        // With O_NONBLOCK, opening a FIFO does not wait for its writer.
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw .missing }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard let about = try? FileManager.default.attributesOfItem(atPath: path),
            about[.type] as? FileAttributeType == .typeRegular,
            let data = try? file.read(upToCount: maximumRead + 1), data.count <= maximumRead
        else { throw .malformed }
        return data
    }

    private static func parse(
        _ data: Data
    ) throws(ReadFailure) -> (entries: [StoredAuditEntry], seal: String) {
        var lines = data.split(separator: UInt8(ascii: "\n"))
        guard let end = lines.popLast(), let seal = object(end)?["seal"]?.string, lines.count <= maximumEvents else {
            throw .malformed
        }
        var entries: [StoredAuditEntry] = []
        for line in lines {
            guard let entry = object(line).flatMap({ StoredAuditEntry($0) }) else { throw .malformed }
            entries.append(entry)
        }
        return (entries, seal)
    }

    private static func object(_ line: Data) -> JSONObject? {
        (try? JSONValue(parsing: Array(line), limits: .init(bytes: maximumRead, depth: 2)))?.object
    }
}

extension StoredAuditEntry {
    /// Reads an event from the JSON object of a line. Nil unless the object has exactly the members of an event.
    fileprivate init?(_ object: JSONObject) {
        // The text of a member. Nil if the member is absent or of another type; `.some(nil)` if the member is null.
        func optional(_ name: String) -> String?? {
            guard let value = object[name] else { return nil }
            if value.isNull { return .some(nil) }
            guard let text = value.string else { return nil }
            return .some(text)
        }
        guard object.members.count == 8, let sequence = object["sequence"]?.integer, let at = object["at"]?.integer,
            let code = object["code"]?.string, let actor = object["actor"]?.string, let app = optional("app_id"),
            let device = optional("device_id"), let detail = object["detail"]?.string,
            let hash = object["hash"]?.string.flatMap({ Hexadecimal.decode($0) })
        else { return nil }
        self.init(
            entry: .init(
                sequence: sequence, code: code, at: at, actor: actor, appID: app, deviceID: device, detail: detail),
            hash: hash)
    }
}
