import AuthContract
import AuthService
@_spi(Benchmarks) import RedisStores

/// Makes calls to Redis through the service's client: RedisTraffic URL TASKS SECONDS get|pipeline|claim|limited. `pipeline` reads
/// 64 keys a call.
@main
struct RedisTraffic {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 5, let tasks = Int(words[2]), let seconds = Int(words[3]) else {
            return print("usage: RedisTraffic URL TASKS SECONDS get|pipeline|claim|limited")
        }
        var options = RedisStores.Options()
        options.mayHaveHistory = { false }
        let stores = try await RedisStores.connect(words[1], options: options)
        let call = try call(words[4], stores)
        let began = ContinuousClock.now
        let end = began + .seconds(seconds)
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<tasks {
                group.addTask {
                    var count = 0
                    while ContinuousClock.now < end {
                        for _ in 0..<16 { count += try await call() }
                    }
                    return count
                }
            }
            var count = 0
            for try await some in group { count += some }
            return count
        }
        let took = began.duration(to: .now) / .seconds(1)
        print("\(words[4]) \(Int(Double(count) / took))/s")
        await stores.close()
    }

    /// A function that makes the named call once, and returns the number of commands that it sent.
    private static func call(_ name: String, _ stores: RedisStores) throws -> @Sendable () async throws -> Int {
        let random = SystemRandom()
        let device = DeviceID(from: random)
        let rate = Rate(burst: 1e12, perMinute: 1)
        @Sendable func claims() -> [ReplayClaim] {
            (0..<2).map { _ in ReplayClaim(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)) }
        }
        switch name {
        case "claim":
            return {
                let now = SystemClock().now
                _ = try await stores.replay.claim(
                    claims(), of: device, timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60)
                return 1
            }
        case "limited":
            return {
                let now = SystemClock().now
                _ = try await stores.limits.claim(
                    claims(), of: device, at: rate, timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60,
                    tag: nil)
                return 1
            }
        case "pipeline":
            return {
                try await stores.get("none", times: 64)
                return 64
            }
        default:
            return {
                try await stores.get("none")
                return 1
            }
        }
    }
}
