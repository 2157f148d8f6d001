internal import Foundation

/// A file descriptor with the few calls that the journal makes, each complete or an error.
final class JournalFile: @unchecked Sendable {
    // Unchecked: the descriptor never changes; the calls are the system's, and positioned.
    private let descriptor: Int32

    init(_ path: String, creating: Bool = false) throws(SystemError) {
        let flags = creating ? O_CREAT | O_EXCL | O_RDWR : O_RDWR
        descriptor = Foundation.open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .current }
    }

    /// Opens a lock file and takes its lock; nil if another process has it. The lock ends with the file.
    ///
    /// - Parameter marking: whether others shall see that a service has the lock.
    static func locked(_ path: String, marking: Bool = true) throws(SystemError) -> JournalFile? {
        let file = try JournalFile(descriptor: Foundation.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600))
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
        if marking { JournalFile.setMark(file.descriptor, F_WRLCK) }
        return file
    }

    /// Whether a process holds the lock at this path. The question takes no lock, not even for a moment: a service that
    /// starts then would find it taken. So it is about the mark beside the lock, which can be asked for.
    static func isLocked(_ path: String) -> Bool {
        guard let file = try? JournalFile(descriptor: Foundation.open(path, O_RDONLY | O_CLOEXEC)) else { return false }
        return JournalFile.isMarked(file.descriptor)
    }

    /// Lets another process have the lock.
    func unlock() {
        JournalFile.setMark(descriptor, F_UNLCK)
        flock(descriptor, LOCK_UN)
    }

    /// Makes the names in a folder durable.
    static func synchronizeFolder(_ path: String) throws(SystemError) {
        let folder = try JournalFile(descriptor: Foundation.open(path, O_RDONLY | O_CLOEXEC))
        guard fsync(folder.descriptor) == 0 else { throw .current }
    }

    private init(descriptor: Int32) throws(SystemError) {
        guard descriptor >= 0 else { throw .current }
        self.descriptor = descriptor
    }

    deinit { Foundation.close(descriptor) }

    /// Writes everything, at `offset`.
    func write(_ bytes: ArraySlice<UInt8>, at offset: Int) throws(SystemError) {
        var (rest, position) = (bytes, offset)
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(position)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count < 0 ? .current : SystemError(number: ENOSPC) }
            rest = rest.dropFirst(count)
            position += count
        }
    }

    /// Reads up to the buffer's size from `offset`; less at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        var filled = 0
        while filled < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled, off_t(offset + filled))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .current }
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Waits until everything written is on the disk, what was written through `mapping` included.
    func synchronize(_ mapping: UnsafeRawBufferPointer? = nil) throws(SystemError) {
        guard JournalFile.synchronizeData(descriptor, mapping) == 0 else { throw .current }
    }

    /// Makes the file so long, of zeros, with the room on the disk taken: writing there cannot fail for want of it.
    func allocate(_ size: Int) throws(SystemError) {
        let number = JournalFile.allocate(descriptor, size)
        guard number == 0 else { throw SystemError(number: number) }
    }

    /// The first `size` bytes of the file in memory, shared with the system: what is stored there outlives the process.
    func map(_ size: Int) throws(SystemError) -> UnsafeMutableRawBufferPointer {
        guard let address = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), address != MAP_FAILED
        else { throw .current }
        return UnsafeMutableRawBufferPointer(start: address, count: size)
    }

    func truncate(to size: Int) throws(SystemError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw .current }
    }
}
