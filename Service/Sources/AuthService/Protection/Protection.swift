internal import AuthContract

/// The rates of the service, each with its default.
public struct ProtectionSettings: Sendable {
    /// Challenges and registrations of one address.
    public var enrolment = Rate(burst: 300, perMinute: 300)
    /// Failures of one address: signatures that did not verify, and unknown devices, apps and credentials.
    public var failedSignatures = Rate(burst: 100, perMinute: 60)
    /// Rows that were re-read for one address before a refusal.
    public var rereads = Rate(burst: 200, perMinute: 200)
    /// Verified requests of one device, counted before their claims. They bound `liveClaimsOfOneDevice`.
    public var device = Rate(burst: 4000, perMinute: 360)
    /// Accepted rotations of one device. Each writes a row, an audit event, and a thumbprint that is kept for ever.
    public var rotations = Rate(burst: 5, perHour: 12)
    /// Live claims of one app at once: three quarters of what the SQLite stores hold.
    public var claimsOfOneApp = 18_000_000
    /// Cached device rows.
    public var cachedDevices = 100_000

    /// The most live claims of one device: 19,520 by default.
    ///
    /// A request makes two claims. They live for 11 minutes from its timestamp, which may be five minutes ahead.
    public var liveClaimsOfOneDevice: Int {
        let seconds = RequestVerifier.claimLife + SignaturePolicy.maximumFutureWindow
        let requests = (device.burst + device.perMinute * Double(seconds) / 60).rounded(.up)
        return Int(exactly: 2 * requests) ?? .max
    }

    /// The defaults.
    public init() {}
}

/// The token buckets of the rates.
final class Protection: Sendable {
    private let enrolment: TokenBuckets<ClientAddress>
    private let failedSignatures: TokenBuckets<ClientAddress>
    private let rereads: TokenBuckets<ClientAddress>
    private let foreignRereads: TokenBuckets<DeviceID>
    private let devices: TokenBuckets<DeviceID>
    private let rotations: TokenBuckets<DeviceID>
    private let claims: ClaimShares
    private let securityEvents: SecurityEvents
    private let clock: any ServiceClock

    init(_ settings: ProtectionSettings, clock: any ServiceClock) {
        enrolment = TokenBuckets(settings.enrolment)
        failedSignatures = TokenBuckets(settings.failedSignatures)
        rereads = TokenBuckets(settings.rereads)
        foreignRereads = TokenBuckets(settings.rereads)
        devices = TokenBuckets(settings.device)
        rotations = TokenBuckets(settings.rotations)
        claims = ClaimShares(maximum: settings.claimsOfOneApp)
        securityEvents = SecurityEvents()
        self.clock = clock
    }

    /// Sets new rates and bounds. Buckets keep their tokens.
    func apply(_ settings: ProtectionSettings) {
        enrolment.apply(settings.enrolment)
        failedSignatures.apply(settings.failedSignatures)
        rereads.apply(settings.rereads)
        foreignRereads.apply(settings.rereads)
        devices.apply(settings.device)
        rotations.apply(settings.rotations)
        claims.apply(maximum: settings.claimsOfOneApp)
    }

    func admitEnrolment(from address: ClientAddress) throws(Refusal) {
        try admit(enrolment.take(address, now: clock.now), "enrolments of \(address)")
    }

    /// Refuses an address with too many failures, before the store is read for it.
    func admitUnproven(from address: ClientAddress) throws(Refusal) {
        try admit(failedSignatures.waiting(address, now: clock.now), "failures of \(address)")
    }

    /// Counts a failed signature, or an unknown device, app or credential.
    func countFailure(from address: ClientAddress) {
        _ = failedSignatures.take(address, now: clock.now)
    }

    /// Whether a row may be re-read for this address. The clients of another service have no address here (nil). They are
    /// counted by device, so that one client cannot use up the re-reads of the others.
    func allowsReread(of device: DeviceID, from address: ClientAddress?) -> Bool {
        guard let address else { return foreignRereads.take(device, now: clock.now) == nil }
        return rereads.take(address, now: clock.now) == nil
    }

    func admitDevice(_ device: DeviceID) throws(Refusal) {
        try admit(devices.take(device, now: clock.now), "requests of one device")
    }

    /// Refuses a device with too many rotations. `countRotation` counts a rotation once it is accepted.
    func admitRotation(of device: DeviceID) throws(Refusal) {
        try admit(rotations.waiting(device, now: clock.now), "rotations of one device")
    }

    func countRotation(of device: DeviceID) { _ = rotations.take(device, now: clock.now) }

    /// Counts claims that are about to be taken. Refuses an app that has used its share of live claims.
    func admitClaims(_ count: Int, of app: AppID, until expiry: UnixTime) throws(Refusal) {
        try admit(claims.take(count, of: app, until: expiry, now: clock.now), "live claims of \(app)")
    }

    /// Uncounts claims that were admitted and not taken.
    func giveBackClaims(_ count: Int, of app: AppID, until expiry: UnixTime) {
        claims.giveBack(count, of: app, until: expiry)
    }

    /// Counts a security event of an unauthenticated request. Nil: the event is not recorded.
    func securityEvent(app: AppID, address: ClientAddress) -> SecurityEvents.Unrecorded? {
        securityEvents.record(app: app, address: address, now: clock.now)
    }

    private func admit(_ wait: Int64?, _ what: @autoclosure () -> String) throws(Refusal) {
        if let wait { throw Refusal(.rateLimited, "too many \(what())", retryAfter: wait) }
    }
}
