internal import Foundation

/// Intermediates that an anchor has been seen to have signed, by their exact bytes.
///
/// Nothing enters that a pinned root has not signed, so nobody else can fill it; it is bounded all the same.
/// Dates are no part of what is remembered.
final class KnownIssuers: @unchecked Sendable {  // `issuers` is only touched under `lock`.
    struct Issuer: Sendable {
        let certificate: AppleCertificate
        let anchor: AppleCertificate
    }

    static let capacity = 16

    private let lock = NSLock()
    private var issuers: [[UInt8]: Issuer] = [:]

    subscript(bytes: [UInt8]) -> Issuer? {
        lock.withLock { issuers[bytes] }
    }

    func remember(_ issuer: Issuer) {
        lock.withLock {
            if issuers.count >= Self.capacity { issuers.removeAll(keepingCapacity: true) }
            issuers[issuer.certificate.bytes] = issuer
        }
    }
}
