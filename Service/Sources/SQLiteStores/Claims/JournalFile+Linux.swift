#if os(Linux) || os(Android)
    internal import Foundation

    extension JournalFile {
        // Bytes stored in a shared mapping are part of the file at once.
        static func synchronizeData(_ descriptor: Int32, _: UnsafeRawBufferPointer?) -> Int32 { fdatasync(descriptor) }

        // Open file description locks (fcntl(2)). glibc declares them only under _GNU_SOURCE.
        private static let getLock: Int32 = 36
        private static let setLock: Int32 = 37

        static func setMark(_ descriptor: Int32, _ kind: Int32) {
            var mark = flock()
            mark.l_type = Int16(kind)
            mark.l_whence = Int16(SEEK_SET)
            _ = withUnsafeMutablePointer(to: &mark) { fcntl(descriptor, setLock, UnsafeMutableRawPointer($0)) }
        }

        static func isMarked(_ descriptor: Int32) -> Bool {
            var mark = flock()
            mark.l_type = Int16(F_WRLCK)
            mark.l_whence = Int16(SEEK_SET)
            let answer = withUnsafeMutablePointer(to: &mark) {
                fcntl(descriptor, getLock, UnsafeMutableRawPointer($0))
            }
            return answer == 0 && mark.l_type != Int16(F_UNLCK)
        }

        static func allocate(_ descriptor: Int32, _ size: Int) -> Int32 {
            while true {
                let number = posix_fallocate(descriptor, 0, off_t(size))
                if number != EINTR { return number }
            }
        }
    }
#endif
