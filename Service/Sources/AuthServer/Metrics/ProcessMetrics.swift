internal import AuthService

/// The system's figures for this process, under the names that all Prometheus clients use.
struct ProcessMetrics: Sendable {
    var cpuSeconds: Double
    var openFiles: Int
    var maximumFiles: Double
    var residentBytes: Int
    var virtualBytes: Int
    /// Unix time, seconds.
    var startedAt: Double

    private static let families: [(name: String, kind: MetricsRegistry.Kind, help: String)] = [
        ("process_cpu_seconds_total", .counter, "Total user and system CPU time spent in seconds."),
        ("process_open_fds", .gauge, "Number of open file descriptors."),
        ("process_max_fds", .gauge, "Maximum number of open file descriptors."),
        ("process_resident_memory_bytes", .gauge, "Resident memory size in bytes."),
        ("process_virtual_memory_bytes", .gauge, "Virtual memory size in bytes."),
        ("process_start_time_seconds", .gauge, "Start time of the process since unix epoch in seconds."),
    ]

    private var values: [Double] {
        [cpuSeconds, Double(openFiles), maximumFiles, Double(residentBytes), Double(virtualBytes), startedAt]
    }

    static func describe(in registry: MetricsRegistry) {
        for family in families { registry.describe(family.name, family.kind, family.help) }
    }

    /// Reads and sets the figures. The time to read them grows with the number of open files, so a Dispatch thread reads them.
    static func update(_ registry: MetricsRegistry) async {
        guard let metrics = await offloading({ ProcessMetrics.read() }) else { return }
        for (family, value) in zip(families, metrics.values) { registry.value(family.name).set(value) }
    }
}
