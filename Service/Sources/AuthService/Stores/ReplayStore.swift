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

    private enum Kind: UInt8 {
        case nonce = 1
        case signatureR = 2
        case signatureBase = 3
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

/// The outcome of claiming.
public enum ClaimOutcome: Sendable, Hashable {
    /// All were free, and are taken now.
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
    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome
}
