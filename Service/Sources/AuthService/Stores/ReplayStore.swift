@_spi(Service) public import AuthContract
internal import Crypto

/// Stands for a value that a device may use only once: 128 bits of SHA-256 over the device's id, the kind and the value.
///
/// 128 bits are enough. A collision refuses a request and never accepts one, and no device can choose the hash of another
/// device's unpredictable nonce.
public struct ReplayClaim: Sendable, Hashable {
    /// The first eight bytes.
    public let high: UInt64
    /// The last eight bytes.
    public let low: UInt64

    private enum Kind: UInt8 {
        case nonce = 1
        case signatureR = 2
        case signatureBase = 3
        case verification = 4
        case raise = 5
        case raiseBegun = 6
        case heldProof = 7
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

    /// The claim on the r value of a signature. A copy of the signature with s rewritten to n - s has the same r. Only
    /// the holder of the key can make a signature with another r.
    public static func signatureR(_ signature: RequestSignature, of device: DeviceID) -> ReplayClaim {
        signature.r.withUnsafeBytes { ReplayClaim(.signatureR, $0, device) }
    }

    /// The signature base of a scheme 2 request, given as its SHA-256. The base covers the request's nonce.
    public static func signatureBase(_ base: [UInt8], of device: DeviceID) -> ReplayClaim {
        base.withUnsafeBytes { ReplayClaim(.signatureBase, $0, device) }
    }

    /// The right to ask a provider about the device's held proof, in this minute and in the next one. A node takes both, so that other nodes
    /// do not ask for one to two minutes. The claims name their minutes, so claims that were made under a wrong clock do not
    /// matter once the clock is right.
    static func heldProof(of device: DeviceID, at now: UnixTime) -> [ReplayClaim] {
        [0, 1].map { next in
            withUnsafeBytes(of: (now.seconds / 60 + next).bigEndian) { ReplayClaim(.heldProof, $0, device) }
        }
    }

    /// The claim that a store keeps for the tag of a verification. The digest identifies the verification.
    fileprivate static func verification(_ digest: [UInt8], of device: DeviceID) -> ReplayClaim {
        digest.withUnsafeBytes { ReplayClaim(.verification, $0, device) }
    }

    /// The claim that a store keeps for the tag of a step in which a verification raises an assertion counter.
    fileprivate static func raise(_ step: ClaimTag.Step, _ digest: [UInt8], of device: DeviceID) -> ReplayClaim {
        digest.withUnsafeBytes { ReplayClaim(step == .raised ? .raise : .raiseBegun, $0, device) }
    }

    // Hashed without arrays. With them, a signed request makes 36 allocations instead of 23 and takes 11 % longer in process.
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

/// Identifies the caller that took a set of claims. A tag is itself a claim, which is taken with the set and lives for a
/// minute. In that time, a caller with the same tag may take the set again.
public struct ClaimTag: Sendable, Hashable {
    /// Seconds for which a store keeps a tag.
    public static let life: Int64 = 60

    /// The claim that a store keeps for the tag.
    public let claim: ReplayClaim

    /// A tag with this stored claim.
    public init(claim: ReplayClaim) { self.claim = claim }

    /// The tag of a verification of this device's request.
    init(of verification: Verification, by device: DeviceID) { claim = .verification(verification.digest, of: device) }

    /// The step of a verification with an assertion: before its counter is raised, or after.
    enum Step: Sendable {
        case begun, raised
    }

    /// The tag of a step: the verification is about to raise the counter to this value, or has raised it.
    init(of step: Step, _ counter: UInt32, in verification: Verification, by device: DeviceID) {
        let bytes = withUnsafeBytes(of: counter.bigEndian) { Array($0) }
        claim = .raise(step, verification.digest + bytes, of: device)
    }
}

/// The outcome of claiming.
public enum ClaimOutcome: Sendable, Hashable {
    /// All claims were free and are now taken. Or the same tag took them within the last minute.
    case claimed
    /// This claim was taken before, so the request is a replay. If several were taken, it is the first of them in the given
    /// order. The call took no claim.
    case taken(ReplayClaim)
    /// The store has lost its history of the request's time, or cannot know whether it has. Refuse with 503. A retry may succeed
    /// after this many seconds.
    case historyLost(retryAfter: Int64)
    /// `expiresAt` is not later than `now`, or not later than that of a claim that was already purged. Refuse as `CLOCK_SKEW`.
    case expired
}

/// Keeps the claims of accepted signatures, so that no request is accepted twice.
///
/// Guarantees:
/// - If several callers without a common tag claim overlapping sets, at most one of them gets `claimed` for each claim. A caller
///   gets `taken` only if a claim of its set was taken before.
/// - A claim stays taken while `now < expiresAt`, even if the process restarts. The store never evicts a live claim: if the store
///   is full, calls throw. It may keep an expired claim for some minutes.
/// - The caller's `now` decides whether a claim is live, not the store's own clock. `now` may step back: a claim with an
///   `expiresAt` no later than that of a claim already purged is `expired`, because the store no longer knows whether it was
///   taken.
/// - A live tag is checked before the history: an accepted request stays accepted for a minute, even if the store has lost its
///   history of that time.
public protocol ReplayStore: Sendable {
    /// Takes all of the claims, or none. A call with `expiresAt <= now` is `expired` and takes nothing.
    ///
    /// - Parameters:
    ///   - claims: the claims that make the request usable only once.
    ///   - device: the device that signed. If a store has several servers, all claims of a device are on one of them. The same
    ///     claim always comes with the same device.
    ///   - timestamp: the time that the client signed. It decides whether a loss of history affects the request.
    ///   - expiresAt: the time until which a copy of the request would be accepted.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    ///   - tag: names the call, so that it can be repeated. Taken with the claims, until `now` + 60 s. If the tag is already
    ///     taken, the call is `claimed` again and changes nothing. Nil: a second call with the claims is a replay.
    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome

    /// Whether a tag was taken within the last minute.
    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool
}

extension ReplayStore {
    /// Takes all of the claims, or none, without a tag.
    public func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        try await claim(
            claims, of: device, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow,
            tag: nil)
    }
}
