internal import Foundation

/// The clocks of a device.
public protocol DeviceClock: Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z on the device's clock, which may be wrong and may jump.
    var wallMilliseconds: Int64 { get }

    /// Time since some fixed moment. It continues while the device sleeps, and never jumps.
    var continuous: Duration { get }
}

/// The operating system's clocks.
public struct SystemClock: DeviceClock {
    // The zero of `continuous`.
    private static let start = ContinuousClock.now

    /// The clocks of this process.
    public init() {}

    /// The date and time of day.
    public var wallMilliseconds: Int64 {
        // Clamped, so that no date can trap the conversion.
        Int64(max(-9e15, min(9e15, (Date().timeIntervalSince1970 * 1000).rounded())))
    }

    /// Time since the first use in this process.
    public var continuous: Duration { Self.start.duration(to: .now) }
}

extension Duration {
    /// Whole milliseconds. The seconds are clamped to a range of more than 100,000 years either way.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let clamped = max(-4_000_000_000_000, min(4_000_000_000_000, seconds))
        return clamped * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
