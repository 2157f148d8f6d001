import Foundation

/// How fast something is: the best of several rounds, because what disturbs a measurement only ever slows it.
struct Measurement {
    let name: String
    let perSecond: Double

    var microseconds: Double { 1_000_000 / perSecond }
}

/// Runs `work` in rounds of about a fifth of a second.
func measure(_ name: String, rounds: Int = 7, _ work: () async throws -> Void) async rethrows -> Measurement {
    var count = 1
    var best = 0.0
    var calibrated = false
    var round = 0
    while round < rounds {
        let started = ContinuousClock.now
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
        round += 1
    }
    return Measurement(name: name, perSecond: best)
}

/// `openssl speed` on the same core in the same run: the yardstick R.
func opensslVerifyRate() -> Double? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl", "speed", "-seconds", "2", "ecdsap256"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    // The last column of the last line: verifications a second.
    return text.split(separator: "\n").last?.split(separator: " ").last.flatMap { Double($0) }
}

/// Does `work` for each of `items`, 64 at a time, in twenty rounds.
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
    return Measurement(name: name, perSecond: best)
}
