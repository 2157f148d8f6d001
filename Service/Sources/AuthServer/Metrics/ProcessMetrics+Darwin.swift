#if canImport(Darwin)
    extension ProcessMetrics {
        /// Returns nil: the figures are read on Linux only, where the service runs.
        static func read() -> ProcessMetrics? { nil }
    }
#endif
