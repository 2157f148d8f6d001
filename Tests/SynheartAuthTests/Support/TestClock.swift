import AuthContract
import Bytes

@testable import SynheartAuth

/// The true time, and the device's clock, which may be wrong.
final class TestClock: DeviceClock {
    private struct Time: Sendable {
        var elapsed = Duration.seconds(1000)
        var error = Duration.zero
        var jumpsPerReading = Duration.zero
    }

    private let time = Locked(Time())
    static let start: Int64 = 1_767_225_600_000

    /// The service's time.
    var trueMilliseconds: Int64 { Self.start + time.withLock { $0.elapsed.wholeMilliseconds } }
    var wallMilliseconds: Int64 {
        time.withLock { time in
            time.error += time.jumpsPerReading
            return Self.start + (time.elapsed + time.error).wholeMilliseconds
        }
    }
    var continuous: Duration { time.withLock { $0.elapsed } }

    func advance(_ duration: Duration) { time.withLock { $0.elapsed += duration } }
    /// Sets the error of the device's clock.
    func setError(_ error: Duration) { time.withLock { $0.error = error } }
    func setJumps(_ jump: Duration) { time.withLock { $0.jumpsPerReading = jump } }
}

/// Lets time pass on the test's clock instead of waiting.
final class TestSleeper: Sleeper {
    private let clock: TestClock
    private let slept = Locked<[(Duration, SleepPurpose)]>([])
    /// For each length, how many deadlines may still expire. `expire` adds one.
    private let expiring = Locked<[Duration: Int]>([:])

    private static let pollsOfAHungCall = 30

    init(_ clock: TestClock) { self.clock = clock }

    /// The waits before retries.
    var retries: [Duration] { slept.withLock { $0.filter { $0.1 == .retry }.map(\.0) } }

    /// The number of waits for another holder of a lock.
    var turns: Int { slept.withLock { $0.count { $0.1 == .turn } } }

    /// Lets one deadline of this length pass, for a call that hangs now or soon. Calls that return do not use it up.
    func expire(_ duration: Duration = .seconds(30)) { expiring.withLock { $0[duration, default: 0] += 1 } }

    private func takeExpiry(_ duration: Duration) -> Bool {
        expiring.withLock { expiring in
            guard let count = expiring[duration], count > 0 else { return false }
            expiring[duration] = count - 1
            return true
        }
    }

    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        slept.withLock { $0.append((duration, purpose)) }
        switch purpose {
        case .retry: clock.advance(duration)
        // Waits in real time, because the task that holds the lock writes to a real disk. Otherwise, on a busy machine, other
        // tasks would use up their attempts before that task is done.
        case .turn: try await Task.sleep(for: .milliseconds(2))
        case .deadline:
            var polls = 0
            while polls < Self.pollsOfAHungCall || !takeExpiry(duration) {
                try await Task.sleep(for: .milliseconds(2))
                polls += 1
            }
        }
    }
}

/// A random source with the same bytes in every run.
final class SeededRandom: RandomSource {
    private let numbers: Locked<SeededNumbers>

    init(_ seed: UInt64) { numbers = Locked(SeededNumbers(seed: seed)) }

    func bytes(_ count: Int) -> [UInt8] {
        numbers.withLock { numbers in (0..<count).map { _ in UInt8(truncatingIfNeeded: numbers.next()) } }
    }
}

extension SeededRandom {
    func below(_ limit: Int) -> Int {
        Int(bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }) % limit
    }
}

final class RecordingLogger: AuthLogger {
    private let recorded = Locked<[LogEntry]>([])

    var entries: [LogEntry] { recorded.withLock { $0 } }

    func log(_ entry: LogEntry) { recorded.withLock { $0.append(entry) } }
}
