public import AuthContract
internal import Crypto

internal import struct Foundation.Data

/// Receives what the SDK has to say. The types of an entry are all that can be logged: there is no free text in it.
public protocol AuthLogger: Sendable {
    /// Takes one entry; must not block.
    func log(_ entry: LogEntry)
}

/// One thing that happened.
public struct LogEntry: Sendable, Hashable {
    /// How much it matters.
    public enum Level: String, Sendable, Hashable, CaseIterable {
        case debug, info, warning, error
    }

    /// What happened.
    public enum Event: String, Sendable, Hashable, CaseIterable {
        case registrationStarted, registrationFinished, registrationFailed, attemptFailed
        case rotationStarted, rotationFinished, rotationFailed
        case identityReset, stateChanged, operationFailed
        /// The service names a key that this device never had.
        case foreignKey
    }

    /// How much it matters.
    public let level: Level
    /// What happened.
    public let event: Event
    /// Whose identity.
    public let appID: AppID
    /// Which device, hashed.
    public let device: HashedDeviceID?
    /// The error.
    public let code: SynheartAuthError.Code?
    /// The change of state.
    public let transition: StateTransition?
    /// How long it took.
    public let duration: Duration?
}

/// A device id that cannot be read back: the first 16 hexadecimal digits of its SHA-256.
public struct HashedDeviceID: Sendable, Hashable, CustomStringConvertible {
    /// 16 hexadecimal digits.
    public let description: String

    /// The hash of an id.
    public init(_ deviceID: DeviceID) {
        description = Hexadecimal.encode(Array(SHA256.hash(data: Data(deviceID.text.utf8))).prefix(8))
    }
}

/// Says nothing.
public struct SilentLogger: AuthLogger {
    /// A logger.
    public init() {}

    /// Drops the entry.
    public func log(_ entry: LogEntry) {}
}

/// What one identity says to the logger.
struct IdentityLog: Sendable {
    let appID: AppID
    let logger: any AuthLogger

    func event(
        _ event: LogEntry.Event, _ level: LogEntry.Level = .info, device: DeviceID? = nil,
        error: SynheartAuthError? = nil, duration: Duration? = nil
    ) {
        logger.log(
            LogEntry(
                level: level, event: event, appID: appID, device: device.map(HashedDeviceID.init), code: error?.code,
                transition: error?.transition, duration: duration))
    }

    func transition(_ transition: StateTransition, _ device: DeviceID?) {
        logger.log(
            LogEntry(
                level: .info, event: .stateChanged, appID: appID, device: device.map(HashedDeviceID.init), code: nil,
                transition: transition, duration: nil))
    }

    func failure(_ error: SynheartAuthError) { event(.operationFailed, .error, error: error) }
}
