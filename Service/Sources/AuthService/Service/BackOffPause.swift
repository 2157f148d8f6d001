package import AuthContract

/// Pauses that double with each failure. Half of each pause is random, so that many nodes do not retry at the same moment.
package struct BackOffPause: Sendable {
    private let first: Double
    private let longest: Double

    /// - Parameters:
    ///   - first: seconds of the longest pause after the first failure.
    ///   - longest: seconds that no pause exceeds.
    package init(first: Double, longest: Double) { (self.first, self.longest) = (first, longest) }

    /// Seconds to wait, given the number of failures before this one.
    package func seconds(after failures: Int, _ random: any RandomSource) -> Double {
        min(first * Double(1 << min(max(failures, 0), 32)), longest) * (0.5 + random.fraction() / 2)
    }
}

extension RandomSource {
    /// A number from 0 up to but not including 1.
    package func fraction() -> Double { Double(bytes(2).reduce(0) { $0 << 8 | UInt32($1) }) / 65536 }
}
