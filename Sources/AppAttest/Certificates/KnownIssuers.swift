internal import Bytes

/// A cache of intermediates that an anchor has signed. An entry is found by the exact bytes of its certificate.
///
/// A full cache is emptied before the next entry is added. An entry does not cover dates: the caller checks them.
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
