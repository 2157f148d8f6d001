internal import AuthContract

/// The rates of the service, each with its default.
public struct ProtectionSettings: Sendable {
    /// Challenges and registrations of one address.
    public var enrolment = Rate(burst: 300, perMinute: 300)
    /// Signatures of one address that did not verify.
    public var failedSignatures = Rate(burst: 100, perMinute: 60)
    /// Rows of one address that were read again before they refused.
    public var rereads = Rate(burst: 200, perMinute: 200)
    /// Verified requests of one device: it holds at most 20,000 live claims, two a request, over their 11 minutes.
    public var device = Rate(burst: 4000, perMinute: 360)
    /// Devices whose rows are kept in memory.
    public var cachedDevices = 100_000

    /// The defaults.
    public init() {}
}

/// The buckets behind the rates.
final class Protection: Sendable {
    private let enrolment: TokenBuckets<ClientAddress>
    private let failedSignatures: TokenBuckets<ClientAddress>
    private let rereads: TokenBuckets<ClientAddress>
    private let devices: TokenBuckets<DeviceID>
    private let securityEvents = TokenBuckets<SecurityEventKey>(Rate(burst: 1, perMinute: 1))
    private let clock: any ServiceClock

    private struct SecurityEventKey: Hashable, Sendable {
        let appID: AppID
        let address: ClientAddress
    }

    init(_ settings: ProtectionSettings, clock: any ServiceClock) {
        enrolment = TokenBuckets(settings.enrolment)
        failedSignatures = TokenBuckets(settings.failedSignatures)
        rereads = TokenBuckets(settings.rereads)
        devices = TokenBuckets(settings.device)
        self.clock = clock
    }

    func admitEnrolment(from address: ClientAddress) throws(Refusal) {
        try admit(enrolment.take(address, now: clock.now), "enrolments of \(address)")
    }

    /// Whether the address has failed too often to be listened to.
    func admitSignature(from address: ClientAddress) throws(Refusal) {
        try admit(failedSignatures.waiting(address, now: clock.now), "failed signatures of \(address)")
    }

    func countFailedSignature(from address: ClientAddress) {
        _ = failedSignatures.take(address, now: clock.now)
    }

    /// Whether the address may still make the service read a row again.
    func allowsReread(from address: ClientAddress) -> Bool {
        rereads.take(address, now: clock.now) == nil
    }

    func admitDevice(_ device: DeviceID) throws(Refusal) {
        try admit(devices.take(device, now: clock.now), "requests of one device")
    }

    /// Whether a security event is recorded: the header behind it is unauthenticated, so one a minute for each app and address.
    func recordsSecurityEvent(app: AppID, address: ClientAddress) -> Bool {
        securityEvents.take(SecurityEventKey(appID: app, address: address), now: clock.now) == nil
    }

    private func admit(_ wait: Int64?, _ what: @autoclosure () -> String) throws(Refusal) {
        if let wait { throw Refusal(.rateLimited, "too many \(what())", retryAfter: wait) }
    }
}
