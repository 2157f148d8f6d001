import AuthContract
import AuthService
import Foundation
import SQLiteStores

/// The replay store with 24 million live claims: memory, delay, and the time to read the claims again at the start.
enum ManyClaims {
    private static let pairs = 12_000_000

    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("bench.sqlite").path
        var options = SQLiteStores.Options()
        options.maximumClaims = 2 * pairs + 1000
        let device = DeviceID(from: SystemRandom())
        let before = residentKilobytes()
        let started = ContinuousClock.now
        do {
            let stores = try SQLiteStores(path: path, options: options)
            let replay = stores.replay
            var delays = Delays()
            for index in 0..<pairs {
                let began = ContinuousClock.now
                var outcome = try? await claim(index, of: device, in: replay)
                // Claims come faster than the disk can create segments; a service would answer 503 here.
                while outcome == nil {
                    try await Task.sleep(for: .milliseconds(1))
                    outcome = try? await claim(index, of: device, in: replay)
                }
                guard outcome == .claimed else { throw Unexpected() }
                if index > pairs - 1_000_000 { delays.note(began.duration(to: .now)) }
            }
            let seconds = started.duration(to: .now) / .seconds(1)
            guard stores.liveClaims == 2 * pairs else { throw Unexpected() }
            print("  \(stores.liveClaims ?? 0) live claims in \(Int(seconds)) s; the last million pairs: \(delays)")
            print(
                "  resident memory: \(residentKilobytes() - before) KiB, \((residentKilobytes() - before) * 1024 / (2 * pairs)) bytes a claim"
            )
            await stores.close()
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: path + "-claims").count
        let reopened = ContinuousClock.now
        let stores = try SQLiteStores(path: path, options: options)
        print(
            "  read again from \(files) files in \(reopened.duration(to: .now)): \(stores.liveClaims ?? 0) live claims")
        guard case .taken = try await claim(pairs / 2, of: device, in: stores.replay) else { throw Unexpected() }
        await stores.close()
        return [
            Measurement(
                "claims: pairs taken", perSecond: Double(pairs) / (started.duration(to: reopened) / .seconds(1)))
        ]
    }

    /// Records the two replay claims of a request that is signed now. Reads the real clock for each request: if the time
    /// stood still, the journal would assume that the clock had been ahead, and would drop claims.
    private static func claim(
        _ index: Int, of device: DeviceID, in replay: any ReplayStore
    ) async throws(StoreError) -> ClaimOutcome {
        let now = SystemClock().now
        return try await replay.claim(
            pair(index), of: device, timestamp: now, expiresAt: now + ReplayClaim.life, now: now, futureWindow: 60)
    }

    private static func pair(_ index: Int) -> [ReplayClaim] {
        // Mixes the bits, so that the words are distributed like hashes.
        func mixed(_ word: UInt64) -> UInt64 { (word &+ 1) &* 0x9E37_79B9_7F4A_7C15 }
        let word = UInt64(index)
        return [
            ReplayClaim(high: mixed(word), low: mixed(word ^ 0xFFFF)),
            ReplayClaim(high: ~mixed(word), low: mixed(word ^ 0xAAAA)),
        ]
    }
}
