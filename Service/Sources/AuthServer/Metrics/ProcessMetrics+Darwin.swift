#if canImport(Darwin)
    extension ProcessMetrics {
        /// Nothing: the service is run on Linux.
        static func read() -> ProcessMetrics? { nil }
    }
#endif
