internal import Bytes

/// A cache of intermediates that an anchor has signed, by their exact bytes.
///
/// Only intermediates that a pinned root has signed are added. The cache is bounded. Dates are not cached.
final class KnownIssuers: Sendable {
    struct Issuer: Sendable {
        let certificate: AppleCertificate
        let anchor: AppleCertificate
    }

    static let capacity = 16

    private let issuers = Locked<[[UInt8]: Issuer]>([:])

    subscript(bytes: [UInt8]) -> Issuer? {
        issuers.withLock { $0[bytes] }
    }

    func remember(_ issuer: Issuer) {
        issuers.withLock { issuers in
            if issuers.count >= Self.capacity { issuers.removeAll(keepingCapacity: true) }
            issuers[issuer.certificate.bytes] = issuer
        }
    }
}
