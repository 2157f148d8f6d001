#if os(Linux) || os(Android)
    internal import Foundation

    extension JournalFile {
        // What was stored in a shared mapping is the file's as soon as it is stored.
        static func synchronizeData(_ descriptor: Int32, _: UnsafeRawBufferPointer?) -> Int32 { fdatasync(descriptor) }

        static func allocate(_ descriptor: Int32, _ size: Int) -> Int32 {
            while true {
                let number = posix_fallocate(descriptor, 0, off_t(size))
                if number != EINTR { return number }
            }
        }
    }
#endif
