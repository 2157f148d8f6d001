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
