#if canImport(Darwin)
    internal import Darwin

    extension JournalFile {
        // On Darwin, fsync leaves the data in the drive's cache.
        static func synchronizeData(_ descriptor: Int32, _ mapping: UnsafeRawBufferPointer?) -> Int32 {
            if let mapping, msync(UnsafeMutableRawPointer(mutating: mapping.baseAddress), mapping.count, MS_SYNC) != 0 {
                return -1
            }
            return fcntl(descriptor, F_FULLFSYNC)
        }

        // Sets nothing. On Darwin, the lock query of fcntl(2) also sees locks of flock(2), so the lock itself is the mark of a
        // running service.
        static func setMark(_ descriptor: Int32, _ kind: Int32) {}

        static func isMarked(_ descriptor: Int32) -> Bool {
            var mark = Darwin.flock()
            mark.l_type = Int16(F_WRLCK)
            mark.l_whence = Int16(SEEK_SET)
            return fcntl(descriptor, F_GETLK, &mark) == 0 && mark.l_type != Int16(F_UNLCK)
        }

        static func allocate(_ descriptor: Int32, _ size: Int) -> Int32 {
            var wanted = fstore_t(
                fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0, fst_length: off_t(size),
                fst_bytesalloc: 0)
            guard fcntl(descriptor, F_PREALLOCATE, &wanted) == 0, ftruncate(descriptor, off_t(size)) == 0 else {
                return errno
            }
            return 0
        }
    }
#endif
