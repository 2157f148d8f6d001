internal import AuthContract
internal import Bytes

/// The rate limits of the service, each with its default.
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
    /// The largest number of live claims of one app: three quarters of the capacity of the SQLite stores.
    public var claimsOfOneApp = 18_000_000
    /// The largest number of cached device rows.
    public var cachedDevices = 100_000

    /// The largest number of live claims of one device: 19,520 by default.
    ///
    /// A request makes two claims. They live for 11 minutes from its timestamp, which may be five minutes ahead.
    public var liveClaimsOfOneDevice: Int {
        let requests = (device.burst + device.perMinute * Double(ReplayClaim.longestLife) / 60).rounded(.up)
        return Int(exactly: 2 * requests) ?? .max
    }

    /// The defaults.
    public init() {}
}

/// The token buckets of the rate limits: on this node, or shared by all nodes.
///
/// If the store of the shared limits fails, requests fail too (503), even those of clients that have proven nothing: without a
/// count there would be no limit. Two limits only protect this node's own store, and stay on the node: re-reads, and the check
/// whether an address has failed too often. This node knows the latter from its own failures, which all nodes count together.
final class Protection: Sendable {
    private let enrolment: TokenBuckets<ClientAddress>
    private let failedSignatures: TokenBuckets<ClientAddress>
    private let rereads: TokenBuckets<ClientAddress>
    private let foreignRereads: TokenBuckets<DeviceID>
    private let devices: TokenBuckets<DeviceID>
    private let rotations: TokenBuckets<DeviceID>
    private let claims: LiveClaimQuota
    private let securityEvents: SecurityEvents
    private let clock: any ServiceClock
    /// Nil: each node counts separately.
    let shared: (any LimitStore)?
    /// Addresses that failed too often on all nodes together, and the end of their refusal.
    private let spentElsewhere = Locked(BoundedCache<ClientAddress, UnixTime>(capacity: 20_000))

    init(_ settings: ProtectionSettings, shared: (any LimitStore)? = nil, clock: any ServiceClock) {
        self.shared = shared
        enrolment = TokenBuckets(settings.enrolment)
        failedSignatures = TokenBuckets(settings.failedSignatures)
        rereads = TokenBuckets(settings.rereads)
        foreignRereads = TokenBuckets(settings.rereads)
        devices = TokenBuckets(settings.device)
        rotations = TokenBuckets(settings.rotations)
        claims = LiveClaimQuota(maximum: settings.claimsOfOneApp)
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

    func admitEnrolment(from address: ClientAddress) async throws(Refusal) {
        let wait =
            if let shared { try await take(.enrolment(address), at: enrolment.rate, shared) } else {
                enrolment.take(address, now: clock.now)
            }
        try admit(wait, "enrolments of \(address)")
    }

    /// Refuses an address with too many failures before the store is read for it.
    func admitUnproven(from address: ClientAddress) throws(Refusal) {
        let now = clock.now
        var wait = failedSignatures.waiting(address, now: now)
        if shared != nil, let end = spentElsewhere.withLock({ $0[address] }), end > now {
            wait = max(wait ?? 0, end - now)
        }
        try admit(wait, "failures of \(address)")
    }

    /// Counts a failed signature, or an unknown device, app or credential.
    func countFailure(from address: ClientAddress) async {
        let now = clock.now
        _ = failedSignatures.take(address, now: now)
        guard let shared else { return }
        // The request is refused in any case. If the store fails, this node has still counted the failure.
        guard let wait = try? await shared.take(.failures(address), at: failedSignatures.rate, isQuestion: false)
        else { return }
        spentElsewhere.withLock { $0[address] = now + wait }
    }

    /// Whether a row may be re-read for this address. For requests of another service's clients, the address is nil. They are
    /// counted by device, so that one client cannot use up the re-reads of the others.
    func allowsReread(of device: DeviceID, from address: ClientAddress?) -> Bool {
        guard let address else { return foreignRereads.take(device, now: clock.now) == nil }
        return rereads.take(address, now: clock.now) == nil
    }

    func admitDevice(_ device: DeviceID) async throws(Refusal) {
        let wait =
            if let shared { try await take(.device(device), at: devices.rate, shared) } else {
                devices.take(device, now: clock.now)
            }
        try admitDevice(after: wait)
    }

    /// Refuses a device that must wait.
    func admitDevice(after wait: Int64?) throws(Refusal) { try admit(wait, "requests of one device") }

    /// The rate of a device's requests.
    var deviceRate: Rate { devices.rate }

    /// Refuses a device with too many rotations. `countRotation` counts a rotation once it is accepted.
    func admitRotation(of device: DeviceID) async throws(Refusal) {
        let wait =
            if let shared { try await take(.rotations(device), at: rotations.rate, isQuestion: true, shared) } else {
                rotations.waiting(device, now: clock.now)
            }
        try admit(wait, "rotations of one device")
    }

    /// Counts an accepted rotation. The rotation is done, so it is answered even if the store fails. In that case, only this
    /// node counts it.
    func countRotation(of device: DeviceID) async {
        _ = rotations.take(device, now: clock.now)
        _ = try? await shared?.take(.rotations(device), at: rotations.rate, isQuestion: false)
    }

    /// Counts claims that are about to be made. Refuses an app that has used up its share of live claims.
    func admitClaims(_ count: Int, of app: AppID, until expiry: UnixTime) throws(Refusal) {
        try admit(claims.take(count, of: app, until: expiry, now: clock.now), "live claims of \(app)")
    }

    /// Uncounts claims that were admitted and not made.
    func giveBackClaims(_ count: Int, of app: AppID, until expiry: UnixTime) {
        claims.giveBack(count, of: app, until: expiry)
    }

    /// Counts a security event of an unauthenticated request. Nil: the event is not recorded.
    func securityEvent(app: AppID, address: ClientAddress) -> SecurityEvents.Unrecorded? {
        securityEvents.record(app: app, address: address, now: clock.now)
    }

    /// Exchanges the numbers of each app's live claims with the other nodes. The last answer is used until the next exchange.
    func exchangeShares() async {
        guard let shared else { return }
        let announcements = claims.announcements(now: clock.now)
        guard !announcements.isEmpty, let elsewhere = try? await shared.exchange(announcements) else { return }
        claims.hear(elsewhere, of: announcements)
    }

    private func take(
        _ bucket: SharedBucket, at rate: Rate, isQuestion: Bool = false, _ shared: any LimitStore
    ) async throws(Refusal) -> Int64? {
        try await storeCall { () async throws(StoreError) in
            try await shared.take(bucket, at: rate, isQuestion: isQuestion)
        }
    }

    private func admit(_ wait: Int64?, _ what: @autoclosure () -> String) throws(Refusal) {
        if let wait { throw Refusal(.rateLimited, "too many \(what())", retryAfter: wait) }
    }
}
