#if canImport(Darwin)
    internal import Darwin

    extension JournalFile {
        // fsync leaves the data in the drive's own cache there.
        static func synchronizeData(_ descriptor: Int32) -> Int32 { fcntl(descriptor, F_FULLFSYNC) }
    }
#endif
