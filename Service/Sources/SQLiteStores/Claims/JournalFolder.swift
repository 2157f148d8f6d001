internal import AuthService
internal import Foundation

/// The folder of the journal: a lock file, and the numbered files (segments) that contain the claims.
struct JournalFolder: Sendable {
    let path: String
    /// Held until the journal is closed.
    private let lock: JournalFile

    init(_ path: String) throws(StoreOpenError) {
        self.path = path
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw StoreOpenError(.notWritable, "The folder \(path) for the claim journal cannot be made.")
        }
        let lock: JournalFile?
        do throws(SystemError) { lock = try Self.locked("\(path)/lock") } catch {
            throw StoreOpenError(
                .notWritable,
                "The claim journal in \(path) cannot be locked: \(error). The folder must belong to the user that runs this."
            )
        }
        guard let lock else {
            throw StoreOpenError(
                .inUse, "Another service has \(path) open. One database serves one service; stop the other one first.")
        }
        self.lock = lock
    }

    func unlock() { lock.unlock() }

    /// Whether the lock file is still at its path. If it is not, another service can create and lock a new file there.
    var place: FileIdentity.Place { lock.place("\(path)/lock") }

    /// Takes the lock; nil if another service has it, or if it is not free within 30 seconds. A running service also sets a mark
    /// (`SQLiteServiceLock`). A lock without the mark is usually a command's, held during one change. So wait for it.
    private static func locked(_ path: String) throws(SystemError) -> JournalFile? {
        for attempt in 0..<3000 {
            if let file = try JournalFile.locked(path) { return file }
            // Do not look for the mark at once, because a service sets it shortly after it takes the lock, and removes it shortly before
            // it releases the lock.
            if attempt >= 20, JournalFile.isLocked(path) { return nil }
            usleep(10_000)
        }
        return nil
    }

    func path(of sequence: UInt64) -> String {
        let digits = String(sequence)
        return "\(path)/claims-" + String(repeating: "0", count: max(0, 20 - digits.count)) + digits
    }

    /// The numbers of the existing segments, ascending.
    func sequences() throws(StoreOpenError) -> [UInt64] {
        try Self.names(in: path).compactMap(Self.sequence).sorted()
    }

    /// Whether a folder has segments. If it has, a service has used the database next to it.
    static func hasSegments(_ path: String) throws(StoreOpenError) -> Bool {
        // A folder that cannot be read may have segments, so only a missing folder counts as empty. `lstat` needs no right to
        // read the folder.
        guard FileStatus(path) != nil else { return false }
        return try names(in: path).contains { sequence($0) != nil }
    }

    private static func names(in path: String) throws(StoreOpenError) -> [String] {
        do { return try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw StoreOpenError(
                .notReadable,
                "The folder \(path) of the claim journal cannot be read. It must belong to the user that runs this.")
        }
    }

    /// The number of the segment with this name; nil if it is not a segment's name.
    private static func sequence(_ name: String) -> UInt64? {
        name.hasPrefix("claims-") ? UInt64(name.dropFirst(7)) : nil
    }

    /// The number of records that the segments can hold, by their sizes.
    func recordCount(_ sequences: [UInt64]) -> Int {
        sequences.reduce(0) { count, sequence in
            let attributes = try? FileManager.default.attributesOfItem(atPath: path(of: sequence))
            return count + ((attributes?[.size] as? NSNumber)?.intValue ?? 0) / ClaimRecord.size
        }
    }

    /// Removes a segment. Returns false if it still exists.
    @discardableResult
    func remove(_ sequence: UInt64) -> Bool { unlink(path(of: sequence)) == 0 || errno == ENOENT }

    /// Renames a damaged segment, so that it remains for inspection. It replaces an earlier damaged segment.
    func putAside(_ sequence: UInt64) { rename(path(of: sequence), "\(path)/damaged") }
}
