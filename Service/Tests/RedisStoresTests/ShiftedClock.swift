import Foundation

/// The wall clock of a server process, which a test moves. The process's monotonic clock stays correct.
///
/// A small library, compiled here, replaces the C library's functions. (libfaketime does not work with jemalloc, which Debian's
/// Redis uses.)
final class ShiftedClock: Sendable {
    private static let source = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static long shift(void) {
            char text[32] = {0};
            const char *path = getenv("SHIFTED_CLOCK");
            int file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) : -1;
            if (file < 0) return 0;
            long count = syscall(SYS_read, file, text, sizeof text - 1);
            syscall(SYS_close, file);
            return count > 0 ? atol(text) : 0;
        }

        int clock_gettime(clockid_t clock, struct timespec *now) {
            int result = syscall(SYS_clock_gettime, clock, now);
            if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
            return result;
        }

        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            struct timespec exact;
            (void)zone;
            if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
            now->tv_sec = exact.tv_sec;
            now->tv_usec = exact.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *kept) {
            struct timespec exact;
            if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
            if (kept) *kept = exact.tv_sec;
            return exact.tv_sec;
        }
        """

    private static let compiler = "/usr/bin/gcc"

    #if os(Linux)
        static var isHere: Bool { RedisInstallation.isHere && FileManager.default.isExecutableFile(atPath: compiler) }
    #else
        static let isHere = false
    #endif

    private let folder: TemporaryFolder
    private var file: String { folder.path + "/shift" }
    private var library: String { folder.path + "/shift.so" }

    init() throws {
        folder = try TemporaryFolder()
        try move(to: 0)
        try Self.source.write(toFile: folder.path + "/shift.c", atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.compiler)
        process.arguments = ["-shared", "-fPIC", "-O1", "-w", "-o", library, folder.path + "/shift.c"]
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw TestFailure("gcc ended with \(process.terminationStatus)") }
    }

    /// The environment of the server process.
    var environment: [String: String] { ["LD_PRELOAD": library, "SHIFTED_CLOCK": file] }

    /// Sets the clock to this many seconds ahead of the correct time.
    func move(to seconds: Int) throws {
        try "\(seconds)".write(toFile: file, atomically: true, encoding: .utf8)
    }
}
