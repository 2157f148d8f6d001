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
    /// At least this one was taken before: the request is a replay. None of the others was taken by this call.
    case taken(ReplayClaim)
    /// The store has lost its history of that time, or cannot know whether it has. Refuse with 503; a retry may succeed after
    /// this many seconds.
    case historyLost(retryAfter: Int64)
    /// The claim would expire no later than claims that were already purged. Refuse as `CLOCK_SKEW`.
    case expired
}

/// Keeps the claims of accepted signatures, so that no request is accepted twice.
///
/// Guarantees: if several callers claim overlapping sets, at most one of them gets `claimed` for each claim. A claim lives
/// until `expiresAt`, even if the process ends. No claim is evicted earlier.
public protocol ReplayStore: Sendable {
    /// Claims all of these, or none.
    ///
    /// - Parameters:
    ///   - claims: what the request may be used for once.
    ///   - timestamp: the time that the client signed. It decides whether a loss of history concerns the request.
    ///   - expiresAt: until when a copy of the request would be accepted.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome
}
