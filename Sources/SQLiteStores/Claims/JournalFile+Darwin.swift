#if canImport(Darwin)
    internal import Darwin

    extension JournalFile {
        // fsync leaves the data in the drive's own cache there.
        static func synchronizeData(_ descriptor: Int32, _ mapping: UnsafeRawBufferPointer?) -> Int32 {
            if let mapping, msync(UnsafeMutableRawPointer(mutating: mapping.baseAddress), mapping.count, MS_SYNC) != 0 {
                return -1
            }
            return fcntl(descriptor, F_FULLFSYNC)
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
