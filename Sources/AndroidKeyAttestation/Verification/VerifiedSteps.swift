internal import Bytes
internal import Crypto

/// The signature of one certificate, by all the bytes that it depends on: the issuer's key and the whole certificate.
struct SignatureStep: Sendable, Hashable {
    private let digest: SHA256Digest

    /// - Parameters:
    ///   - certificate: the whole certificate, its signature included.
    ///   - issuerKeyDigest: the SHA-256 of the issuer's SubjectPublicKeyInfo. Its fixed length keeps the two apart.
    init(of certificate: AttestationCertificate, issuerKeyDigest: some Sequence<UInt8>) {
        var hash = SHA256()
        hash.update(data: Array(issuerKeyDigest))
        hash.update(data: certificate.encoded)
        digest = hash.finalize()
    }
}

/// A cache of signatures above the leaf that were found valid.
///
/// Most of a chain's cost is the P-384 and RSA signatures of certificates that millions of devices send. What is cached
/// is that a key signed certain bytes, which never changes; names, dates, shape and revocation are judged each time.
///
/// Only signatures of paths that passed every path rule enter, so no one without a key of Google's or of a factory's can
/// add an entry. Leaves never enter: an attested key signs as many as its holder likes. Nor do remotely provisioned
/// attestation certificates: each device has its own. A factory's attestation certificates, which the devices of a batch
/// share, have a space of their own, so that they cannot push out the authorities above all of them.
final class VerifiedSteps: Sendable {
    private struct Spaces {
        var authorities: RecentSteps
        var attestations: RecentSteps
    }

    private let spaces: Locked<Spaces>

    /// Digests of 32 bytes: a full cache takes less than 100 KiB.
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

/// A set that forgets what was not used lately: when the newer half is full, the older half is dropped.
struct RecentSteps {
    private let halfCapacity: Int
    private var newer: Set<SignatureStep> = []
    private var older: Set<SignatureStep> = []

    init(capacity: Int) { halfCapacity = max(1, capacity / 2) }

    /// At most the capacity.
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
