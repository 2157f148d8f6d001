#if os(Linux)
    internal import Foundation

    extension ProcessMetrics {
        /// Reads the figures from `/proc` (proc(5)) and getrlimit(2); nil if `/proc/self/stat` cannot be read. Any other figure
        /// that cannot be read is 0.
        static func read() -> ProcessMetrics? {
            guard let stat = text("/proc/self/stat"), let end = stat.lastIndex(of: ")") else { return nil }
            // The second field is the name in parentheses. It may contain anything, so count fields from its end.
            let fields = stat[end...].split(separator: " ").dropFirst().map { Double($0) ?? 0 }
            let ticks = Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
            guard fields.count > 21 else { return nil }
            return ProcessMetrics(
                cpuSeconds: (fields[11] + fields[12]) / ticks,
                openFiles: (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0,
                maximumFiles: maximumFiles, residentBytes: Int(fields[21]) * Int(sysconf(Int32(_SC_PAGESIZE))),
                virtualBytes: Int(fields[20]), startedAt: bootTime + fields[19] / ticks)
        }

        private static var maximumFiles: Double {
            var limit = rlimit()
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            guard getrlimit(resource, &limit) == 0 else { return 0 }
            return limit.rlim_cur == rlim_t.max ? .infinity : Double(limit.rlim_cur)
        }

        private static var bootTime: Double {
            let line = text("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
            return line.flatMap { Double($0.dropFirst("btime ".count)) } ?? 0
        }

        private static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
    }
#endif
