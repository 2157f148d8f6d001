#if canImport(Darwin)
    extension ProcessMetrics {
        /// Nil: the service runs on Linux.
        static func read() -> ProcessMetrics? { nil }
    }
#endif
