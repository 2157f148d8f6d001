internal import AuthContract
internal import Bytes

/// The rate limits of the service, each with its default.
public struct ProtectionSettings: Sendable {
    /// Challenges and registrations of one address.
    public var enrolment = Rate(burst: 300, perMinute: 300)
    /// Failed signatures of one device at one address.
    public var failedSignatures = Rate(burst: 100, perMinute: 60)
    /// Unknown devices, unknown apps and wrong credentials that one address sent.
    public var strangers = Rate(burst: 100, perMinute: 60)
    /// Reads of one device's row before a refusal, for one address.
    public var rereads = Rate(burst: 200, perMinute: 200)
    /// Requests of one device with a verified signature, counted before their claims. This rate bounds `liveClaimsOfOneDevice`.
    public var device = Rate(burst: 4000, perMinute: 360)
    /// Accepted rotations of one device. Each writes a row, an audit event, and a thumbprint that is kept forever.
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
/// count there would be no limit. Each node alone limits re-reads, unknown ids that `KnownDevices` wrongly let pass, and tries
/// of one wrong credential. The shared store counts `failures` and `strangers` of all nodes, but a node checks these buckets
/// without asking the store: it remembers those that the store reported as empty (`spentElsewhere`).
final class Protection: Sendable {
    private let enrolment: TokenBuckets<ClientAddress>
    /// Buckets of `SharedBucket.failures`. A client that always fails does not block other devices at its address.
    private let failedSignatures: TokenBuckets<SharedBucket>
    /// Buckets of `SharedBucket.strangers`: requests with unknown device ids, for each address.
    private let strangers: TokenBuckets<SharedBucket>
    private let rereads: TokenBuckets<Reader>
    /// False positives of `KnownDevices.mayExist(_:)`: unknown ids that it let through while their address was over the limit
    /// `strangers`. Each bucket limits the store reads for one such id from one address.
    private let wrongPositives = TokenBuckets<Reader>(Rate(burst: 3, perMinute: 1))
    /// Credentials that were wrong. A credential that stays wrong, such as one in a forgotten job, is soon refused by this limit
    /// alone. So it does not use up its address's limit.
    private let wrongCredentials = TokenBuckets<CredentialGuess>(Rate(burst: 10, perMinute: 6), capacity: 20_000)
    private let devices: TokenBuckets<DeviceID>
    private let rotations: TokenBuckets<DeviceID>
    private let claims: LiveClaimQuota
    private let securityEvents: SecurityEvents
    private let clock: any ServiceClock
    /// The store of the shared limits; nil: each node counts separately.
    let shared: (any LimitStore)?
    /// Buckets of `failures` and `strangers` that the shared store reported as empty, with the time when each has a token again.
    private let spentElsewhere = Locked(BoundedCache<SharedBucket, UnixTime>(capacity: 20_000))

    /// Trusted proxies that named no client, each with the time of the last event about it.
    private let unnamed = Locked(BoundedCache<ClientAddress, UnixTime>(capacity: 1000))

    /// A device whose row is read, and the address for which it is read; nil: the client's address is unknown.
    private struct Reader: Hashable {
        let device: DeviceID
        let address: ClientAddress?
    }

    /// A credential that an address sent: the first bytes of its id. There may be no credential with this id.
    private struct CredentialGuess: Hashable {
        let address: ClientAddress
        let id: String

        init(_ id: String, at address: ClientAddress) {
            self.address = address
            self.id = String(decoding: id.utf8.prefix(16), as: UTF8.self)
        }
    }

    init(_ settings: ProtectionSettings, shared: (any LimitStore)? = nil, clock: any ServiceClock) {
        self.shared = shared
        enrolment = TokenBuckets(settings.enrolment)
        failedSignatures = TokenBuckets(settings.failedSignatures)
        strangers = TokenBuckets(settings.strangers)
        rereads = TokenBuckets(settings.rereads)
        devices = TokenBuckets(settings.device)
        rotations = TokenBuckets(settings.rotations)
        claims = LiveClaimQuota(maximum: settings.claimsOfOneApp)
        securityEvents = SecurityEvents()
        self.clock = clock
    }

    /// Sets new rates and bounds. Buckets keep their tokens, up to the new burst.
    func apply(_ settings: ProtectionSettings) {
        enrolment.apply(settings.enrolment)
        failedSignatures.apply(settings.failedSignatures)
        strangers.apply(settings.strangers)
        rereads.apply(settings.rereads)
        devices.apply(settings.device)
        rotations.apply(settings.rotations)
        claims.apply(maximum: settings.claimsOfOneApp)
    }

    func admitEnrolment(from address: ClientAddress) async throws(Refusal) {
        // A proxy that names no client may have many clients.
        let share: Double = address.isUnnamed ? 10 : 1
        var rate = enrolment.rate
        (rate.burst, rate.perMinute) = (rate.burst * share, rate.perMinute * share)
        let wait =
            if let shared { try await take(.enrolment(address), at: rate, shared) } else {
                enrolment.take(address, cost: 1 / share, now: clock.now)
            }
        try admit(wait, "enrolments of \(address)")
    }

    /// Refuses a device's own request before the store is read for it, for one of two reasons. The device's signatures failed too
    /// often at this address. Or the address sent too many unknown devices, unknown apps or wrong credentials, and either no
    /// device has this id or the address sent this unknown id too often.
    func admitUnproven(
        _ device: DeviceID, from address: ClientAddress, mayExist: @autoclosure () -> Bool
    ) throws(Refusal) {
        guard !address.isUnnamed else { return }
        try admit(
            waiting(.failures(address, device), failedSignatures), "failed signatures of one device at \(address)")
        if let wait = waiting(.strangers(address), strangers) {
            let repeated = wrongPositives.waiting(Reader(device: device, address: address), now: clock.now)
            if repeated != nil || !mayExist() { try admit(max(wait, repeated ?? 0), "strangers at \(address)") }
        }
    }

    /// Refuses an unknown app before the store is read for it, if the address sent too many unknown devices, unknown apps or
    /// wrong credentials.
    func admitStranger(from address: ClientAddress) throws(Refusal) {
        guard !address.isUnnamed else { return }
        try admit(waiting(.strangers(address), strangers), "strangers at \(address)")
    }

    /// Refuses a credential before the store is read for it, if it was wrong too often at the address, or if the address sent too
    /// many unknown devices, unknown apps or wrong credentials.
    ///
    /// - Parameter id: the credential's id, as it was sent.
    func admitCredential(_ id: String, from address: ClientAddress) throws(Refusal) {
        guard !address.isUnnamed else { return }
        try admit(
            wrongCredentials.waiting(CredentialGuess(id, at: address), now: clock.now),
            "wrong tries of one credential at \(address)")
        try admitStranger(from: address)
    }

    /// Counts a credential that does not exist or has a wrong secret.
    func countCredential(_ id: String, from address: ClientAddress) async {
        guard !address.isUnnamed else { return }
        _ = wrongCredentials.take(CredentialGuess(id, at: address), now: clock.now)
        await countStranger(from: address)
    }

    /// Counts a failed signature of an existing device.
    func countFailure(of device: DeviceID, from address: ClientAddress) async {
        guard !address.isUnnamed else { return }
        _ = await count(.failures(address, device), failedSignatures)
    }

    /// Counts an unknown device, an unknown app or a wrong credential.
    ///
    /// - Parameter device: the unknown device; nil: an app or a credential. If the address's bucket was already empty,
    ///   the device was judged only because `KnownDevices` wrongly let its id pass. The store is read for such an id and
    ///   this address only a few times.
    func countStranger(_ device: DeviceID? = nil, from address: ClientAddress) async {
        guard !address.isUnnamed else { return }
        if await count(.strangers(address), strangers), let device {
            _ = wrongPositives.take(Reader(device: device, address: address), now: clock.now)
        }
    }

    /// The seconds until a bucket that counts refusals has a token, both on this node and in the shared store; nil: the bucket has a token.
    private func waiting(_ bucket: SharedBucket, _ buckets: TokenBuckets<SharedBucket>) -> Int64? {
        let now = clock.now
        let wait = buckets.waiting(bucket, now: now)
        // Ignore an end that is more than 300 s ahead: the clock was set back.
        guard shared != nil, let end = spentElsewhere.withLock({ $0[bucket] }), (1...300).contains(end - now) else {
            return wait
        }
        return max(wait ?? 0, end - now)
    }

    /// Counts a refusal. Returns whether the bucket was empty.
    private func count(_ bucket: SharedBucket, _ buckets: TokenBuckets<SharedBucket>) async -> Bool {
        let now = clock.now
        let isSpent = buckets.take(bucket, now: now) != nil
        // The request is refused in any case. If the store fails, this node has still counted the refusal.
        guard let shared, let wait = try? await shared.take(bucket, at: buckets.rate, isDryRun: false) else {
            return isSpent
        }
        spentElsewhere.withLock { $0[bucket] = now + wait }
        return true
    }

    /// Counts a re-read of a row, and returns whether the re-read is allowed. Each address has its own limit for each
    /// device, so one client cannot use up the re-reads of another. `address` is nil for a request that another service
    /// received. An unnamed address is treated as nil.
    func allowsReread(of device: DeviceID, from address: ClientAddress?) -> Bool {
        let reader = Reader(device: device, address: address?.isUnnamed == true ? nil : address)
        return rereads.take(reader, now: clock.now) == nil
    }

    func admitDevice(_ device: DeviceID) async throws(Refusal) {
        let wait =
            if let shared { try await take(.device(device), at: devices.rate, shared) } else {
                devices.take(device, now: clock.now)
            }
        try admitDevice(after: wait)
    }

    /// Refuses a request of a device whose bucket is empty for `wait` seconds; nil: the bucket had a token.
    func admitDevice(after wait: Int64?) throws(Refusal) { try admit(wait, "requests of one device") }

    /// The rate of a device's requests.
    var deviceRate: Rate { devices.rate }

    /// Refuses a device with too many rotations. `countRotation` counts a rotation once it is accepted.
    func admitRotation(of device: DeviceID) async throws(Refusal) {
        let wait =
            if let shared { try await take(.rotations(device), at: rotations.rate, isDryRun: true, shared) } else {
                rotations.waiting(device, now: clock.now)
            }
        try admit(wait, "rotations of one device")
    }

    /// Counts an accepted rotation. The rotation is done, so it is answered even if the store fails. In that case, only this
    /// node counts it.
    func countRotation(of device: DeviceID) async {
        _ = rotations.take(device, now: clock.now)
        _ = try? await shared?.take(.rotations(device), at: rotations.rate, isDryRun: false)
    }

    /// Counts claims that are about to be made. Refuses an app that has reached its maximum of live claims.
    func admitClaims(_ count: Int, of app: AppID, until expiry: UnixTime) throws(Refusal) {
        try admit(claims.take(count, of: app, until: expiry, now: clock.now), "live claims of \(app)")
    }

    /// Subtracts claims that were admitted but not made.
    func giveBackClaims(_ count: Int, of app: AppID, until expiry: UnixTime) {
        claims.giveBack(count, of: app, until: expiry)
    }

    /// Counts a security event of an unauthenticated request. If the event is to be recorded, returns the earlier events
    /// that were only counted; otherwise nil.
    func securityEvent(app: AppID, address: ClientAddress) -> SecurityEvents.Unrecorded? {
        securityEvents.record(app: app, address: address, now: clock.now)
    }

    /// Whether an event about a proxy that names no client is due: once an hour for each proxy.
    func isEventDue(about proxy: ClientAddress) -> Bool {
        let now = clock.now
        return unnamed.withLock { unnamed in
            if let last = unnamed[proxy], (0..<3600).contains(now - last) { return false }
            unnamed[proxy] = now
            return true
        }
    }

    /// Exchanges the numbers of each app's live claims with the other nodes. The last answer is used until the next one.
    func exchangeShares() async {
        guard let shared else { return }
        let announcements = claims.announcements(now: clock.now)
        guard !announcements.isEmpty, let elsewhere = try? await shared.exchange(announcements) else { return }
        claims.applyReports(elsewhere, of: announcements)
    }

    private func take(
        _ bucket: SharedBucket, at rate: Rate, isDryRun: Bool = false, _ shared: any LimitStore
    ) async throws(Refusal) -> Int64? {
        try await storeCall { () async throws(StoreError) in
            try await shared.take(bucket, at: rate, isDryRun: isDryRun)
        }
    }

    private func admit(_ wait: Int64?, _ what: @autoclosure () -> String) throws(Refusal) {
        if let wait { throw Refusal(.rateLimited, "too many \(what())", retryAfter: wait) }
    }
}
