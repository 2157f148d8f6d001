import CAllocations
import Foundation

/// The speed of an operation, or a ratio of two speeds.
struct Measurement {
    let name: String
    /// The operations per second; nil if the measurement is a ratio of two rates.
    let perSecond: Double?
    var ratio: Double?
    /// The number of memory allocations of one run; nil if they were not counted.
    var allocations: Double?

    init(_ name: String, perSecond: Double, allocations: Double? = nil) {
        self.name = name
        self.perSecond = perSecond
        self.allocations = allocations
    }

    init(_ name: String, ratio: Double) {
        self.name = name
        self.ratio = ratio
        perSecond = nil
    }

    var microseconds: Double { perSecond.map { 1_000_000 / $0 } ?? .nan }

    func report(_ yardstick: Measurement) {
        let label = name.padding(toLength: max(name.count, 54), withPad: " ", startingAt: 0)
        guard let perSecond else { return print(label + String(format: "%37.3f", ratio ?? .nan)) }
        let share = perSecond / (yardstick.perSecond ?? .nan)
        print(
            label + String(format: "%13.0f %11.1f %12.3f", perSecond, microseconds, share)
                + (allocations.map { String(format: "%14.1f", $0) } ?? ""))
    }
}

/// Runs `work` in rounds of about a fifth of a second. The result is the fastest round: disturbances only make rounds slower.
@inline(never)  // Inlining it makes the optimizer of Swift 6.3 crash in some callers.
func measure(_ name: String, rounds: Int = 7, _ work: () async throws -> Void) async rethrows -> Measurement {
    var count = 1
    var best = 0.0
    var fewest = Double.infinity
    var calibrated = false
    var round = 0
    while round < rounds {
        let (started, allocations) = (ContinuousClock.now, allocations_made())
        for _ in 0..<count { try await work() }
        let seconds = max(started.duration(to: .now) / .seconds(1), 1e-9)
        if !calibrated {
            if seconds < 0.05 {
                count *= 4
                continue
            }
            count = max(1, Int(Double(count) * 0.2 / seconds))
            calibrated = true
            continue
        }
        best = max(best, Double(count) / seconds)
        fewest = min(fewest, Double(allocations_made() - allocations) / Double(count))
        round += 1
    }
    return Measurement(name, perSecond: best, allocations: fewest)
}

/// The time of `work` divided by that of `other`. Both run alternately for a few milliseconds, so that they see the
/// same state of the machine. The result is the median of 1,000 ratios, so that a single disturbance has no effect.
@inline(never)
func ratio(
    _ work: () async throws -> Void, to other: () async throws -> Void
) async rethrows -> Double {
    var ratios: [Double] = []
    for _ in 0..<1000 {
        let started = ContinuousClock.now
        for _ in 0..<100 { try await work() }
        let between = ContinuousClock.now
        for _ in 0..<100 { try await other() }
        ratios.append(started.duration(to: between) / between.duration(to: .now))
    }
    return ratios.sorted()[ratios.count / 2]
}

/// The throughput of two threads relative to one: the best of three tries.
func scaling(_ name: String, _ work: @escaping @Sendable () throws -> Void) throws -> Measurement {
    func rate(_ threads: Int) -> Double {
        let finished = DispatchGroup()
        let total = NSLock()
        nonisolated(unsafe) var done = 0
        for _ in 0..<threads {
            let thread = Thread {
                var count = 0
                let end = ContinuousClock.now + .seconds(1)
                while ContinuousClock.now < end {
                    for _ in 0..<16 { try? work() }
                    count += 16
                }
                total.withLock { done += count }
                finished.leave()
            }
            finished.enter()
            thread.start()
        }
        finished.wait()
        return Double(done)
    }
    return Measurement(name, ratio: (0..<3).map { _ in rate(2) / rate(1) }.max() ?? 0)
}

/// Times of single calls.
struct Delays: CustomStringConvertible {
    private var microseconds: [Double] = []

    mutating func note(_ duration: Duration) { microseconds.append(duration / .microseconds(1)) }

    var description: String {
        let sorted = microseconds.sorted()
        func at(_ share: Double) -> String {
            sorted.isEmpty ? "-" : String(format: "%.1f us", sorted[Int(Double(sorted.count - 1) * share)])
        }
        return "p50 \(at(0.5)), p99 \(at(0.99)), longest \(at(1))"
    }
}

func residentKilobytes() -> Int {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
        let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") })
    else { return 0 }
    return line.split(separator: " ").compactMap { Int($0) }.first ?? 0
}

/// The P-256 verifications per second that `openssl speed` measures, the yardstick R. Nil if openssl did not run.
func opensslVerifyRate() -> Double? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl", "speed", "-seconds", "2", "ecdsap256"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    // `openssl speed` ends by SIGALRM. The threads of Dispatch block that signal, and a child process inherits the
    // blocked signals, so unblock it.
    var (none, blocked) = (sigset_t(), sigset_t())
    pthread_sigmask(SIG_SETMASK, &none, &blocked)
    defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
    guard (try? process.run()) != nil else { return nil }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    // The last column of the last line: verifications a second.
    return text.split(separator: "\n").last?.split(separator: " ").last.flatMap { Double($0) }
}

/// Runs `work` once for each of `items`, 64 at a time: a twentieth of them in each of 20 rounds. The result is the fastest round.
func concurrently<Item: Sendable>(
    _ name: String, _ items: [Item], _ work: @escaping @Sendable (Item) async throws -> Void
) async throws -> Measurement {
    let rounds = 20
    let size = items.count / rounds
    var best = 0.0
    for round in 0..<rounds {
        let share = items[round * size..<(round + 1) * size]
        let started = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<64 {
                group.addTask {
                    for index in stride(from: share.startIndex + lane, to: share.endIndex, by: 64) {
                        try await work(share[index])
                    }
                }
            }
            try await group.waitForAll()
        }
        best = max(best, Double(size) / (started.duration(to: .now) / .seconds(1)))
    }
    return Measurement(name, perSecond: best)
}
