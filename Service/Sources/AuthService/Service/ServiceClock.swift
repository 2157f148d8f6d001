public import AuthContract
internal import Foundation

/// The service's clock. Tests inject one that they set.
public protocol ServiceClock: Sendable {
    /// The time now, UTC.
    var now: UnixTime { get }
}

/// The machine's wall clock.
public struct SystemClock: ServiceClock {
    /// The clock of this machine.
    public init() {}

    public var now: UnixTime { UnixTime(Int64(time(nil))) }
}
