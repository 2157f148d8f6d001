internal import Foundation

/// A file descriptor with the calls that the journal needs. Each call completes or throws.
final class JournalFile: @unchecked Sendable {
    // Unchecked: the descriptor never changes, and the system's positioned calls are thread-safe.
    private let descriptor: Int32

    init(_ path: String, creating: Bool = false) throws(SystemError) {
        let flags = creating ? O_CREAT | O_EXCL | O_RDWR : O_RDWR
        descriptor = Foundation.open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .current }
    }

    /// Opens or creates a lock file and takes its lock; nil if the lock cannot be taken now. Closing the file releases
    /// the lock.
    ///
    /// - Parameter marking: whether to set the mark that tells other processes that a service is running.
    static func locked(_ path: String, marking: Bool = true) throws(SystemError) -> JournalFile? {
        let file = try JournalFile(descriptor: Foundation.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600))
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // Throw any other error: the file system may not support locks.
            guard errno == EWOULDBLOCK || errno == EINTR else { throw .current }
            return nil
        }
        if marking { JournalFile.setMark(file.descriptor, F_WRLCK) }
        return file
    }

    /// Whether a service holds the lock at this path. This reads the mark that a service sets while it holds the lock.
    /// Taking the lock to test it, even briefly, would delay a service that starts.
    static func isLocked(_ path: String) -> Bool {
        guard let file = try? JournalFile(descriptor: Foundation.open(path, O_RDONLY | O_CLOEXEC)) else { return false }
        return JournalFile.isMarked(file.descriptor)
    }

    /// Whether this file is at a path.
    func place(_ path: String) -> FileIdentity.Place { FileIdentity(descriptor: descriptor)?.place(path) ?? .unknown }

    /// Releases the lock.
    func unlock() {
        JournalFile.setMark(descriptor, F_UNLCK)
        flock(descriptor, LOCK_UN)
    }

    /// Makes the entries of a folder durable.
    static func synchronizeFolder(_ path: String) throws(SystemError) {
        let folder = try JournalFile(descriptor: Foundation.open(path, O_RDONLY | O_CLOEXEC))
        guard fsync(folder.descriptor) == 0 else { throw .current }
    }

    private init(descriptor: Int32) throws(SystemError) {
        guard descriptor >= 0 else { throw .current }
        self.descriptor = descriptor
    }

    deinit { Foundation.close(descriptor) }

    /// Writes all bytes at `offset`.
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

    /// Reads up to the buffer's size from `offset`. Returns the number of bytes, which is smaller at the end of the file.
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

    /// Waits until all written data is on the disk, including data stored through `mapping`.
    func synchronize(_ mapping: UnsafeRawBufferPointer? = nil) throws(SystemError) {
        guard JournalFile.synchronizeData(descriptor, mapping) == 0 else { throw .current }
    }

    /// Extends the file with zeros and allocates the space, so that writing there cannot fail on a full disk.
    func allocate(_ size: Int) throws(SystemError) {
        let number = JournalFile.allocate(descriptor, size)
        guard number == 0 else { throw SystemError(number: number) }
    }

    /// Maps the first `size` bytes of the file as shared memory: stored bytes outlive the process.
    func map(_ size: Int) throws(SystemError) -> UnsafeMutableRawBufferPointer {
        guard let address = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), address != MAP_FAILED
        else { throw .current }
        return UnsafeMutableRawBufferPointer(start: address, count: size)
    }

    func truncate(to size: Int) throws(SystemError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw .current }
    }
}
