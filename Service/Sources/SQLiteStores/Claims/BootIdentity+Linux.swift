#if os(Linux) || os(Android)
    internal import Foundation

    extension BootIdentity {
        static var systemText: String? {
            try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        }

        /// Seconds since the machine started, including sleep.
        @Sendable static func seconds() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            return Int64(time.tv_sec)
        }
    }
#endif
