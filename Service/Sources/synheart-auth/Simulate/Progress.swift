import Glibc
import SoftwareDevice

/// Reports the progress of a fleet on standard error: a line each second on a terminal, otherwise every ten seconds.
struct Progress {
    private let log: FleetLog

    init(_ log: FleetLog) { self.log = log }

    func during<Value: Sendable>(_ what: String, _ work: () async -> Value) async -> Value {
        let log = log
        let start = ContinuousClock.now
        let (before, pause) = (Self.count(log), Duration.seconds(isatty(STDERR_FILENO) == 1 ? 1 : 10))
        let telling = Task {
            var last = before
            while (try? await Task.sleep(for: pause)) != nil {
                let (now, errors) = Self.count(log)
                let seconds = Int(start.duration(to: .now).inSeconds)
                let rate = Double(now - last.exchanges) / pause.inSeconds
                StandardError.print(
                    "\(what): \(seconds) s, \(now - before.exchanges) exchanges (\(Int(rate)) a second), "
                        + "\(errors - before.errors) errors")
                last = (now, errors)
            }
        }
        defer { telling.cancel() }
        return await work()
    }

    private static func count(_ log: FleetLog) -> (exchanges: Int, errors: Int) {
        log.routes.values.reduce(into: (0, 0)) { sum, line in
            sum.0 += line.count
            sum.1 += line.errors.values.reduce(0, +)
        }
    }
}
