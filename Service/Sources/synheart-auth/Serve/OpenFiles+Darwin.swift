#if canImport(Darwin)
    import Darwin

    extension OpenFiles {
        static var resource: Int32 { RLIMIT_NOFILE }
    }
#endif
