public import AuthContract
internal import Crypto
internal import Foundation

/// Receives the SDK's log entries. An entry has no free text: only values of its types can be logged.
public protocol AuthLogger: Sendable {
    /// Takes an entry. Must not block.
    func log(_ entry: LogEntry)
}

/// A log entry.
public struct LogEntry: Sendable, Hashable {
    /// The severity.
    public enum Level: String, Sendable, Hashable, CaseIterable {
        /// A detail for the SDK's developers. No event has this level today.
        case debug
        /// Normal progress.
        case info
        /// A failure that the SDK retries, or that the app can handle.
        case warning
        /// An operation failed.
        case error
    }

    /// The event.
    public enum Event: String, Sendable, Hashable, CaseIterable {
        /// A registration begins.
        case registrationStarted
        /// The registration has ended: the device is registered, or waits as pending.
        case registrationFinished
        /// The registration has ended with an error.
        case registrationFailed
        /// One attempt of a registration failed. The SDK may try again.
        case attemptFailed
        /// A key rotation begins.
        case rotationStarted
        /// The new key is the current one.
        case rotationFinished
        /// An attempt of a rotation failed. The identity stays registered, unless its key is lost.
        case rotationFailed
        /// The identity was deleted from the device.
        case identityReset
        /// The state of the identity has changed. The entry has the states before and after.
        case stateChanged
        /// A change of state was refused, the record cannot be decoded, or a function of Synheart Core's runtime failed. The
        /// entry has the error's code.
        case operationFailed
        /// The service names a key that this device never had.
        case foreignKey
        /// The platform reports that a key or the record is gone or unusable. The SDK does not believe it yet.
        case suspicion
    }

    /// The severity.
    public let level: Level
    /// The event.
    public let event: Event
    /// The app.
    public let appID: AppID
    /// The device, hashed.
    public let device: HashedDeviceID?
    /// The error.
    public let code: SynheartAuthError.Code?
    /// The change of state.
    public let transition: StateTransition?
    /// The duration of the operation.
    public let duration: Duration?
    /// The platform's number, such as an OSStatus.
    public let status: Int?

    init(
        level: Level, event: Event, appID: AppID, device: HashedDeviceID?, code: SynheartAuthError.Code?,
        transition: StateTransition?, duration: Duration?, status: Int? = nil
    ) {
        self.level = level
        self.event = event
        self.appID = appID
        self.device = device
        self.code = code
        self.transition = transition
        self.duration = duration
        self.status = status
    }
}

extension LogEntry: CustomStringConvertible {
    /// One line of the members that are set: `EVENT app=… device=… code=… status=… registering -> registered 12 ms`.
    public var description: String {
        var words = [event.rawValue, "app=\(appID)"]
        if let device { words.append("device=\(device)") }
        if let code { words.append("code=\(code.text)") }
        if let status { words.append("status=\(status)") }
        if let transition { words.append("\(transition.from.rawValue) -> \(transition.to.rawValue)") }
        if let duration { words.append("\(duration.wholeMilliseconds) ms") }
        return words.joined(separator: " ")
    }
}

/// The hash of a device id, from which the id cannot be computed: the first 16 hexadecimal digits of its SHA-256.
public struct HashedDeviceID: Sendable, Hashable, CustomStringConvertible {
    /// 16 hexadecimal digits.
    public let description: String

    /// The hash of an id.
    public init(_ deviceID: DeviceID) {
        description = Hexadecimal.encode(Array(SHA256.hash(data: Data(deviceID.text.utf8))).prefix(8))
    }
}

/// Drops every entry.
public struct SilentLogger: AuthLogger {
    /// A logger.
    public init() {}

    /// Drops the entry.
    public func log(_ entry: LogEntry) {}
}

/// Writes a line for each entry to standard error. The default of debug builds outside Apple's systems.
public struct StandardErrorLogger: AuthLogger {
    /// A logger.
    public init() {}

    /// Writes the entry.
    public func log(_ entry: LogEntry) {
        // A closed standard error must not end the process.
        try? FileHandle.standardError.write(contentsOf: Data("synheart-auth \(entry.level.rawValue): \(entry)\n".utf8))
    }
}

/// Writes the log entries of one identity.
struct IdentityLog: Sendable {
    let appID: AppID
    let logger: any AuthLogger

    func event(
        _ event: LogEntry.Event, _ level: LogEntry.Level = .info, device: DeviceID? = nil,
        error: SynheartAuthError? = nil, duration: Duration? = nil, status: Int? = nil
    ) {
        logger.log(
            LogEntry(
                level: level, event: event, appID: appID, device: device.map(HashedDeviceID.init), code: error?.code,
                transition: error?.transition, duration: duration, status: status))
    }

    func transition(_ transition: StateTransition, _ device: DeviceID?) {
        logger.log(
            LogEntry(
                level: .info, event: .stateChanged, appID: appID, device: device.map(HashedDeviceID.init), code: nil,
                transition: transition, duration: nil))
    }

    func failure(_ error: SynheartAuthError) { event(.operationFailed, .error, error: error) }
}
