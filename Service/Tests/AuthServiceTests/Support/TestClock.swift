import AuthContract
import AuthService
import Foundation

/// A clock that stands until a test moves it.
final class TestClock: ServiceClock, @unchecked Sendable {
    // Unchecked: the lock guards the time.
    private let lock = NSLock()
    private var time: UnixTime

    init(at time: UnixTime) { self.time = time }

    var now: UnixTime { lock.withLock { time } }

    func advance(_ seconds: Int64) { lock.withLock { time = time + seconds } }

    func stepBack(_ seconds: Int64) { lock.withLock { time = time - seconds } }
}

/// The same bytes in every run (SplitMix64).
final class SeededRandom: RandomSource, @unchecked Sendable {
    // Unchecked: the lock guards the state.
    private let lock = NSLock()
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { withUnsafeBytes(of: next()) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    func next() -> UInt64 {
        lock.withLock {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
