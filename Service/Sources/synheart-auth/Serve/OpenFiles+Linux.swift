#if canImport(Glibc)
    import Glibc

    extension OpenFiles {
        static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
    }
#endif
