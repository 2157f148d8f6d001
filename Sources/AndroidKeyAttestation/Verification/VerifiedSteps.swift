internal import Bytes
internal import Crypto

/// The cache key for the signature of one certificate: a digest of the issuer's key and the complete certificate.
struct SignatureStep: Sendable, Hashable {
    private let digest: SHA256Digest

    /// - Parameters:
    ///   - certificate: the whole certificate, its signature included.
    ///   - issuerKeyDigest: the SHA-256 of the issuer's SubjectPublicKeyInfo. Its fixed length separates the two hashed parts.
    init(of certificate: AttestationCertificate, issuerKeyDigest: some Sequence<UInt8>) {
        var hash = SHA256()
        hash.update(data: Array(issuerKeyDigest))
        hash.update(data: certificate.encoded)
        digest = hash.finalize()
    }
}

/// A cache of valid signatures above the leaf.
///
/// Most of a chain's cost is verifying the P-384 and RSA signatures of certificates that millions of devices send. The cache only
/// records that a key signed certain bytes, which never changes. Names, dates, shape and revocation are checked each time.
///
/// Only signatures of paths that passed every path rule are added, so only Google and factories can cause entries.
/// Leaves are never added, because an attested key can sign any number of them. Neither are remotely provisioned
/// attestation certificates, because each device has its own. A factory's attestation certificates are shared by a batch
/// of devices. They have a separate part of the cache, so that they cannot evict the authorities above them.
final class VerifiedSteps: Sendable {
    private struct Spaces {
        var authorities: RecentSteps
        var attestations: RecentSteps
    }

    private let spaces: Locked<Spaces>

    /// Creates an empty cache. Each entry is a digest of 32 bytes, so a full cache with the default capacities takes less than 100 KiB.
    init(authorityCapacity: Int = 256, attestationCapacity: Int = 1024) {
        spaces = Locked(
            Spaces(
                authorities: RecentSteps(capacity: authorityCapacity),
                attestations: RecentSteps(capacity: attestationCapacity)))
    }

    func contains(_ step: SignatureStep) -> Bool {
        spaces.withLock { $0.authorities.contains(step) || $0.attestations.contains(step) }
    }

    /// Adds the signatures of a path that passed every path rule.
    func insert(authorities new: [SignatureStep], attestation: SignatureStep?) {
        spaces.withLock { spaces in
            for step in new { spaces.authorities.insert(step) }
            if let attestation { spaces.attestations.insert(attestation) }
        }
    }

    var count: Int { spaces.withLock { $0.authorities.count + $0.attestations.count } }
}

/// A bounded set that drops elements that were not used recently: when the newer half is full, the older half is
/// dropped.
struct RecentSteps {
    private let halfCapacity: Int
    private var newer: Set<SignatureStep> = []
    private var older: Set<SignatureStep> = []

    init(capacity: Int) { halfCapacity = max(1, capacity / 2) }

    /// The number of elements, at most the capacity.
    var count: Int { newer.union(older).count }

    mutating func contains(_ step: SignatureStep) -> Bool {
        if newer.contains(step) { return true }
        guard older.contains(step) else { return false }
        insert(step)
        return true
    }

    mutating func insert(_ step: SignatureStep) {
        guard !newer.contains(step) else { return }
        if newer.count >= halfCapacity {
            older = newer
            newer = []
        }
        newer.insert(step)
    }
}
