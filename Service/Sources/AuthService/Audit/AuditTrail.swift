internal import AuthContract
internal import Crypto
internal import StrictJSON

/// Checks the audit log and signs its end.
///
/// The chain alone reveals a change or a gap within the log. An attacker who can write the database can also remove the end, or
/// create a new chain. A signed head that is kept elsewhere, such as in the service's log, reveals both.
public struct AuditTrail: Sendable {
    private let log: any AuditLog
    private let key: ServiceKey
    private let clock: any ServiceClock
    let archives: (any AuditArchiveStore)?
    /// The folder with the files of the archives; nil: they cannot be checked here.
    public var folder: AuditArchiveFolder?

    init(log: any AuditLog, archives: (any AuditArchiveStore)? = nil, key: ServiceKey, clock: any ServiceClock) {
        self.log = log
        self.archives = archives
        self.key = key
        self.clock = clock
    }

    /// The Ed25519 key that verifies heads, 32 bytes. It is derived from the service key, because heads are kept for years,
    /// while the keys of device tokens are rotated and dropped. A rotation of the service key writes the old public key to
    /// the log.
    public var publicKey: [UInt8] {
        get throws { Array(try signer().publicKey.rawRepresentation) }
    }

    /// The signed end of the log.
    public func head() async throws -> AuditHead {
        try head(of: try await log.link(at: nil))
    }

    /// The signed head of a log that ends with `link`, or of an empty log if `link` is nil.
    package func head(of link: AuditLink?) throws -> AuditHead {
        try sign(.log, link ?? AuditLink(sequence: 0, hash: AuditChain.origin))
    }

    /// Signs a position in the chain.
    func sign(_ kind: AuditHead.Kind, _ link: AuditLink) throws -> AuditHead {
        let now = clock.now
        let text = AuditHead.signedText(kind, sequence: link.sequence, at: now, hash: link.hash)
        let signature = try signer().signature(for: Array(text.utf8))
        return AuditHead(kind, sequence: link.sequence, at: now, hash: link.hash, signature: Array(signature))
    }

    /// Checks the whole chain, archives included, and that it contains the head, if one is given.
    public func verify(against head: AuditHead? = nil) async throws -> AuditCheckResult {
        try await verify(against: head, skipsMissing: false)
    }

    /// - Parameter skipsMissing: whether an archive without its file is skipped. Otherwise a missing file is a fault.
    package func verify(against head: AuditHead?, skipsMissing: Bool) async throws -> AuditCheckResult {
        if let head, try await !isGenuine(head) { return .headOfOtherKey }
        let archived = try await verifyArchives(lookingFor: head?.sequence, skipsMissing: skipsMissing)
        guard archived.finding == .intact else { return archived.finding }
        if let broken = try await log.firstBrokenLink() { return .brokenLink(broken) }
        guard let head else { return .intact }
        if let found = archived.found { return found == head.hash ? .intact : .rewritten }
        return try await compare(head)
    }

    /// Whether the log, or an archive, still contains this head. Checks neither the chain nor the archives' files, so it is cheap
    /// enough to call often.
    public func compare(_ head: AuditHead) async throws -> AuditCheckResult {
        guard head.sequence > 0 else { return head.hash == AuditChain.origin ? .intact : .rewritten }
        guard let link = try await log.link(at: head.sequence) else {
            let end = try await log.link(at: nil)?.sequence ?? 0
            var former: [Curve25519.Signing.PublicKey]?
            guard let archive = try await archives?.auditArchives().last, archive.last >= head.sequence,
                // The last event of the log is never removed, so an intact log does not end before an archive.
                archive.last <= end, try await isSealed(archive, &former)
            else { return .cut(last: end) }
            return archive.last > head.sequence || archive.hash == head.hash ? .intact : .rewritten
        }
        return link.hash == head.hash ? .intact : .rewritten
    }

    private func isGenuine(_ head: AuditHead) async throws -> Bool {
        var former: [Curve25519.Signing.PublicKey]?
        return try await isGenuine(head, &former)
    }

    /// Whether the service signed the head, with a present or a former service key.
    ///
    /// - Parameter former: a cache of the former keys; nil: they were not read yet.
    func isGenuine(_ head: AuditHead, _ former: inout [Curve25519.Signing.PublicKey]?) async throws -> Bool {
        // During a rotation of the service key, the old and the new key may both have signed heads.
        let present = try Self.publicKeys(of: key)
        if head.isSigned(by: present) { return true }
        let keys = if let former { former } else { try await formerKeys(before: present) }
        former = keys
        return head.isSigned(by: keys)
    }

    /// The public keys of a service key, which has several keys during a rotation. Each of them may have signed heads.
    static func publicKeys(of key: ServiceKey) throws -> [Curve25519.Signing.PublicKey] {
        try key.allDerived(for: purpose).map { try signer($0).publicKey }
    }

    // MARK: Former service keys

    /// The record of a rotation of the service key: the public keys that signed earlier heads, each signed by the new key. So
    /// old heads stay valid, and an attacker who can only write the database cannot add a key.
    static func succession(of key: ServiceKey) throws -> JSONValue {
        let signers = try key.allDerived(for: purpose).map { try signer($0) }
        guard let first = signers.first else { return [] }
        return .array(
            try signers.dropFirst().map { former in
                let publicKey = Array(former.publicKey.rawRepresentation)
                let signature = try first.signature(for: successionText(publicKey))
                return [
                    "key": .string(Base64.url.encode(publicKey)),
                    "signature": .string(Base64.url.encode(Array(signature))),
                ]
            })
    }

    /// The former keys that a chain of signed rotations connects to one of the `present` keys. Reads the log, then the
    /// archives, newest event first.
    private func formerKeys(
        before present: [Curve25519.Signing.PublicKey]
    ) async throws -> [Curve25519.Signing.PublicKey] {
        var former = FormerAuditKeys(before: present)
        var before: Int64?
        while true {
            let page = try await log.events(app: nil, device: nil, before: before, limit: Self.page)
            guard let last = page.last else { break }
            before = last.sequence
            for recorded in page where recorded.event.code == .serviceKeyRotated { former.add(recorded.event.detail) }
        }
        try await eachArchivedRotation { former.add($0) }
        return former.keys
    }

    static func successionText(_ publicKey: [UInt8]) -> [UInt8] {
        Array("\(purpose)/former\n".utf8) + publicKey
    }

    private static let page = 1000

    private static let purpose = "synheart-auth/audit-head/v1"

    private func signer() throws -> Curve25519.Signing.PrivateKey { try Self.signer(key.derived(for: Self.purpose)) }

    private static func signer(_ seed: SymmetricKey) throws -> Curve25519.Signing.PrivateKey {
        try Curve25519.Signing.PrivateKey(rawRepresentation: seed.withUnsafeBytes { Array($0) })
    }
}
