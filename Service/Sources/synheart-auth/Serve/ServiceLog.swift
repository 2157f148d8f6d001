import AuthServer
import Foundation
import Logging
import Synchronization

/// The log of a running service, with one line when it starts and one when it stops.
final class ServiceLog: Sendable {
    let logger: Logger
    /// The lowest level that is logged.
    let level: LogLevel
    private let writer: LogWriter
    private let run = Mutex(Run())

    private struct Run: Sendable {
        var startedAt: ContinuousClock.Instant?
        var stop: (reason: String, at: ContinuousClock.Instant)?
    }

    /// Makes all loggers of the process write JSON lines to standard error.
    init(_ configuration: ServiceConfiguration) {
        let (level, writer) = (LogLevel(configuration.logLevel), LogWriter(descriptor: STDERR_FILENO))
        LoggingSystem.bootstrap { JSONLogHandler(label: $0, level: level, writer: writer) }
        (self.level, self.writer, logger) = (level, writer, Logger(label: "synheart-auth"))
    }

    /// The number of lines that were lost.
    var dropped: Int { writer.dropped }

    /// Waits until all logged lines are written, but no longer than `limit`. The limit is needed because the reader of
    /// standard error may have stopped.
    func flush(within limit: Duration = .seconds(1)) { writer.flush(within: limit) }

    /// Logs that the service accepts requests.
    func started(_ addresses: AuthServer.Addresses, over place: StorePlace, _ configuration: ServiceConfiguration) {
        run.withLock { $0.startedAt = .now }
        let given = configuration.all.filter { $0.origin != .standard }.map { "\($0.key.rawValue) (\($0.origin))" }
        logger.notice(
            "the service started",
            metadata: [
                "version": "\(Build.version)", "stores": "\(place)", "public": "\(addresses.publicURL)",
                "operations": "\(addresses.operationsURL)", "metrics": "\(addresses.metricsURL ?? "")",
                "settings": "\((given + ["all others (default)"]).joined(separator: ", "))",
            ])
    }

    /// Keeps the reason and the time at which the service began to stop, for the last line.
    func stopping(because reason: String) { run.withLock { $0.stop = $0.stop ?? (reason, .now) } }

    /// Logs that the service has stopped. Logs nothing if it never started: the command's error has the reason.
    ///
    /// - Parameter error: the reason; nil: the reason given to `stopping`.
    func stopped(because error: (any Error)? = nil) {
        let run = run.withLock { $0 }
        guard let started = run.startedAt else { return }
        logger.log(
            level: error == nil ? .notice : .error, "the service stopped",
            metadata: [
                "reason": "\(error.map { "\($0)" } ?? run.stop?.reason ?? "its work ended")",
                "ran_seconds": .stringConvertible(started.duration(to: .now).components.seconds),
                "stop_seconds": .stringConvertible(run.stop?.at.duration(to: .now).components.seconds ?? 0),
            ])
    }

    /// Logs that a second signal ends the process.
    func abandoned() {
        logger.warning("the service stops at once: it got a second signal")
        flush(within: .milliseconds(100))
    }
}
