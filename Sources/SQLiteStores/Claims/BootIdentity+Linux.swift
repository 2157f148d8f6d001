#if os(Linux) || os(Android)
    internal import Foundation

    extension BootIdentity {
        static var systemText: String? {
            try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        }
    }
#endif
