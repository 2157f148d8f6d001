#if !canImport(Security)
    internal import Foundation

    /// A regular file with the bytes that it has when it is opened. If the file becomes shorter later, reading fails. Bytes that
    /// are appended later are not read.
    final class RegularFile {
        /// The size in bytes.
        let length: Int64
        private let descriptor: Int32
        private var remaining: Int64

        /// Whether all bytes were read.
        var isAtEnd: Bool { remaining == 0 }

        init(_ path: String) throws(UnreadableBody) {
            // `O_NONBLOCK`, because opening a FIFO would wait for its writer.
            descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            var information = stat()
            let isFile =
                descriptor >= 0 && fstat(descriptor, &information) == 0 && information.st_mode & S_IFMT == S_IFREG
            length = isFile ? Int64(information.st_size) : 0
            remaining = length
            guard isFile else { throw UnreadableBody() }
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// Reads the next bytes. Returns their number, 0 at the end; nil if they cannot be read.
        func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
            guard remaining > 0 else { return 0 }
            let limit = Int(min(Int64(buffer.count), remaining))
            var count = Foundation.read(descriptor, buffer.baseAddress, limit)
            while count < 0, errno == EINTR { count = Foundation.read(descriptor, buffer.baseAddress, limit) }
            guard count > 0 else { return nil }
            remaining -= Int64(count)
            return count
        }
    }
#endif
