@_spi(Service) public import AuthContract
internal import Crypto

/// A value that may be seen once: 128 bits of SHA-256 over the device, the kind and the value.
///
/// 128 bits are enough. A collision refuses a request and never accepts one, and no device can choose the hash of another
/// device's unpredictable nonce.
public struct ReplayClaim: Sendable, Hashable {
    /// The first and the second eight bytes.
    public let high: UInt64
    public let low: UInt64

    /// Seconds for which the service's claims live after the date of their request: longer than any request is fresh.
    public static let life: Int64 = SignaturePolicy.maximumPastWindow + 60

    private enum Kind: UInt8 {
        case nonce = 1
        case signatureR = 2
        case signatureBase = 3
        case verification = 4
        case raise = 5
        case raiseBegun = 6
    }

    /// A claim that a store kept.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The nonce of a scheme 1 request.
    public static func nonce(_ nonce: RequestNonce, of device: DeviceID) -> ReplayClaim {
        nonce.uuid.withBytes { ReplayClaim(.nonce, $0, device) }
    }

    /// The r value of a signature. It survives the rewrite of s to n - s, and only the holder of the key can change it.
    public static func signatureR(_ signature: RequestSignature, of device: DeviceID) -> ReplayClaim {
        signature.r.withUnsafeBytes { ReplayClaim(.signatureR, $0, device) }
    }

    /// The signature base of a scheme 2 request, which covers its nonce.
    public static func signatureBase(_ base: [UInt8], of device: DeviceID) -> ReplayClaim {
        base.withUnsafeBytes { ReplayClaim(.signatureBase, $0, device) }
    }

    /// A verification by another service, of which a store keeps a tag.
    fileprivate static func verification(_ digest: [UInt8], of device: DeviceID) -> ReplayClaim {
        digest.withUnsafeBytes { ReplayClaim(.verification, $0, device) }
    }

    /// The raise of an assertion counter by a verification.
    fileprivate static func raise(_ step: ClaimTag.Step, _ digest: [UInt8], of device: DeviceID) -> ReplayClaim {
        digest.withUnsafeBytes { ReplayClaim(step == .raised ? .raise : .raiseBegun, $0, device) }
    }

    // Hashed without arrays. With arrays, and with the other plain code that was measured beside them, a signed request made
    // 36 allocations in place of 23, and took 11 % longer in process.
    private init(_ kind: Kind, _ value: UnsafeRawBufferPointer, _ device: DeviceID) {
        let digest = withUnsafeTemporaryAllocation(byteCount: 17 + value.count, alignment: 8) { input in
            device.uuid.withBytes { input.copyMemory(from: $0) }
            input[16] = kind.rawValue
            UnsafeMutableRawBufferPointer(rebasing: input[17...]).copyMemory(from: value)
            return SHA256.hash(of: UnsafeRawBufferPointer(input))
        }
        (high, low) = digest.withUnsafeBytes { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }
}

/// Says who took a set of claims: a claim of its own, which is taken with them and lives for a minute. Whoever has the same tag
/// may take them again meanwhile.
public struct ClaimTag: Sendable, Hashable {
    /// Seconds for which a tag is known.
    public static let life: Int64 = 60

    /// What a store keeps.
    public let claim: ReplayClaim

    /// A tag that a store keeps as this claim.
    public init(claim: ReplayClaim) { self.claim = claim }

    /// The tag of a verification of this device's request.
    init(of verification: Verification, by device: DeviceID) { claim = .verification(verification.digest, of: device) }

    /// What a verification did with the counter of its assertion: it was about to raise it, or it raised it.
    enum Step: Sendable {
        case begun, raised
    }

    /// The tag of the same verification, for a step of raising the counter to this value.
    init(of step: Step, _ counter: UInt32, in verification: Verification, by device: DeviceID) {
        let bytes = withUnsafeBytes(of: counter.bigEndian) { Array($0) }
        claim = .raise(step, verification.digest + bytes, of: device)
    }
}

/// The outcome of claiming.
public enum ClaimOutcome: Sendable, Hashable {
    /// All were free, and are taken now. Or the same tag took them within the last minute.
    case claimed
    /// This one was taken before: the request is a replay. If several were, it is the first of them in the order given. The
    /// call took none of the others.
    case taken(ReplayClaim)
    /// The store has lost its history of that time, or cannot know whether it has. Refuse with 503; a retry may succeed after
    /// this many seconds.
    case historyLost(retryAfter: Int64)
    /// The claim would expire no later than claims that were already purged. Refuse as `CLOCK_SKEW`.
    case expired
}

/// Keeps the claims of accepted signatures, so that no request is accepted twice.
///
/// Guarantees:
/// - If several callers claim overlapping sets, at most one of them gets `claimed` for each claim. A caller is refused only
///   if another one got a claim of its set.
/// - A claim is taken while `now < expiresAt`, even if the process ends in between. The store evicts no claim earlier. It
///   frees a claim within a minute after that, and keeps any number of live ones.
/// - Time is what `now` says, never the store's own clock. `now` may step back: a claim with an `expiresAt` no later than
///   that of a claim already purged is `expired`, because the store no longer knows whether it was taken.
/// - A tag that is held is asked before the history: what was accepted stays accepted for a minute, also where the store has
///   lost its history of that time.
public protocol ReplayStore: Sendable {
    /// Claims all of these, or none. A call with `expiresAt <= now` is `expired` and claims nothing.
    ///
    /// - Parameters:
    ///   - claims: what the request may be used for once.
    ///   - device: the device that signed. Claims of one device lie together where a store has several servers; the same claim
    ///     always comes with the same device.
    ///   - timestamp: the time that the client signed. It decides whether a loss of history concerns the request.
    ///   - expiresAt: until when a copy of the request would be accepted.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    ///   - tag: taken with the claims, until `now` + 60 s. If it is taken already, the call is `claimed` and changes nothing. Nil:
    ///     the claims may be taken once.
    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome

    /// Whether a tag was taken within the last minute.
    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool
}

extension ReplayStore {
    /// Claims all of these, or none, for good.
    public func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        try await claim(
            claims, of: device, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow,
            tag: nil)
    }
}
