import AuthContract
import AuthService
import Foundation

/// A clock that only moves when a test moves it.
final class TestClock: ServiceClock, @unchecked Sendable {
    // Unchecked: the lock guards the time.
    private let lock = NSLock()
    private var time: UnixTime

    init(at time: UnixTime) { self.time = time }

    var now: UnixTime { lock.withLock { time } }

    func advance(_ seconds: Int64) { lock.withLock { time = time + seconds } }

    func stepBack(_ seconds: Int64) { lock.withLock { time = time - seconds } }
}

/// Random bytes that are the same in every run with the same seed.
final class SeededRandom: RandomSource, @unchecked Sendable {
    // Unchecked: the lock guards the generator.
    private let lock = NSLock()
    private var numbers: SeededNumbers

    init(seed: UInt64) { numbers = SeededNumbers(seed: seed) }

    func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { withUnsafeBytes(of: next()) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    func next() -> UInt64 { lock.withLock { numbers.next() } }

    func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
