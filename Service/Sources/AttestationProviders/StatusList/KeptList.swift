internal import AndroidKeyAttestation
internal import AuthContract
internal import AuthService
internal import Crypto
internal import Foundation
internal import StrictJSON

/// A revocation list as its source sent it, and the time when the source last confirmed it.
struct KeptList: Sendable {
    let list: RevocationStatusList
    let bytes: [UInt8]
    /// The `ETag` for a conditional request (RFC 9110 section 8.8.3); nil: the source sent none.
    var entityTag: String?
    var confirmedAt: UnixTime

    init(_ list: RevocationStatusList, bytes: [UInt8], entityTag: String?, confirmedAt: UnixTime) {
        self.list = list
        self.bytes = bytes
        self.entityTag = entityTag
        self.confirmedAt = confirmedAt
    }

    init(parsing bytes: [UInt8], entityTag: String?, confirmedAt: UnixTime) throws(JSONError) {
        self.init(
            try RevocationStatusList(parsing: bytes), bytes: bytes, entityTag: entityTag, confirmedAt: confirmedAt)
    }
}

/// The copy of a revocation list on disk: one line of JSON with its metadata, then the list as its source sent it.
///
/// Both are in one file, so that a crash cannot combine the date of one list with the entries of another.
struct KeptListFile: Sendable {
    let source: String
    private let file: URL

    /// - Parameter directory: the folder of the file. `save` creates the folder if it does not exist.
    init(of source: String, in directory: String) {
        self.source = source
        let name = Hexadecimal.encode(SHA256.hash(data: Array(source.utf8)).prefix(16))
        file = URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent("\(name).statuslist")
    }

    /// The copy; nil if it is missing or damaged.
    func load(at now: UnixTime) async -> KeptList? {
        await offloading {
            guard
                let bytes = try? boundedContents(of: file.path, limit: RevocationStatusList.maximumLength + 4096)?
                    .bytes,
                let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
                let json = try? JSONValue(parsing: bytes[..<end]), let fields = try? JSONFields(json),
                (try? fields.string("source")) == source, let digest = try? fields.string("sha256"),
                let confirmed = try? fields.integer("confirmed_at")
            else { return nil }
            let list = Array(bytes[bytes.index(after: end)...])
            guard Self.digest(list) == digest else { return nil }
            return try? KeptList(
                parsing: list, entityTag: fields.optionalString("entity_tag"),
                confirmedAt: min(UnixTime(confirmed), now))
        }
    }

    /// Replaces the copy atomically.
    func save(_ kept: KeptList) async throws {
        try await offloading {
            let head: JSONValue = .object(
                JSONObject([
                    ("source", .string(source)), ("sha256", .string(Self.digest(kept.bytes))),
                    ("confirmed_at", .integer(kept.confirmedAt.seconds)),
                    ("entity_tag", kept.entityTag.map { .string($0) } ?? .null),
                ]))
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(head.bytes + [UInt8(ascii: "\n")] + kept.bytes).write(to: file, options: .atomic)
        }
    }

    private static func digest(_ bytes: [UInt8]) -> String { Hexadecimal.encode(SHA256.hash(data: bytes)) }
}

/// The contents of a file and when it was written; nil if it is larger than the limit.
func boundedContents(of path: String, limit: Int) throws -> (bytes: [UInt8], modifiedAt: UnixTime)? {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    guard let handle = FileHandle(forReadingAtPath: path) else { throw CocoaError(.fileReadNoSuchFile) }
    defer { try? handle.close() }
    // Read one byte more than allowed: if it exists, the file is too large.
    let bytes = try handle.read(upToCount: limit + 1) ?? Data()
    let modified = (attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
    // The file system may return a time that an Int64 cannot represent. Use 1970 then, so that an age limit refuses the list.
    return bytes.count > limit ? nil : (Array(bytes), UnixTime(Int64(exactly: modified.rounded(.down)) ?? 0))
}
