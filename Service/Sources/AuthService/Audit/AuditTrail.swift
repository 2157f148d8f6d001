internal import AuthContract
internal import Crypto

/// Checks the audit log and signs where it ends.
///
/// The chain alone finds a change or a gap within the log. Whoever can write the database can also cut off its end, or make
/// a whole new chain; a signed head that was kept elsewhere, such as in the service's log, finds both.
public struct AuditTrail: Sendable {
    private let log: any AuditLog
    private let key: ServiceKey
    private let clock: any ServiceClock

    init(log: any AuditLog, key: ServiceKey, clock: any ServiceClock) {
        self.log = log
        self.key = key
        self.clock = clock
    }

    /// The Ed25519 key that verifies heads, 32 bytes. It follows from the service key and stays while that does: keys of
    /// device tokens are rotated and dropped, heads are kept for years.
    public var publicKey: [UInt8] {
        get throws { Array(try signer().publicKey.rawRepresentation) }
    }

    /// Where the log ends now, signed.
    public func head() async throws -> AuditHead {
        let last = try await log.link(at: nil) ?? AuditLink(sequence: 0, hash: AuditChain.origin)
        let now = clock.now
        let text = AuditHead.signedText(sequence: last.sequence, at: now, hash: last.hash)
        let signature = try signer().signature(for: Array(text.utf8))
        return AuditHead(sequence: last.sequence, at: now, hash: last.hash, signature: Array(signature))
    }

    /// Follows the whole chain, and finds the head in it where one is given.
    public func verify(against head: AuditHead? = nil) async throws -> AuditFinding {
        if let head, try !isGenuine(head) { return .foreignHead }
        if let broken = try await log.firstBrokenLink() { return .brokenLink(broken) }
        guard let head else { return .intact }
        return try await compare(head)
    }

    /// Whether the log still contains this head, without following the chain: cheap, for whoever asks often.
    public func compare(_ head: AuditHead) async throws(StoreError) -> AuditFinding {
        guard head.sequence > 0 else { return head.hash == AuditChain.origin ? .intact : .rewritten }
        guard let link = try await log.link(at: head.sequence) else {
            return .cut(last: try await log.link(at: nil)?.sequence ?? 0)
        }
        return link.hash == head.hash ? .intact : .rewritten
    }

    private func isGenuine(_ head: AuditHead) throws -> Bool {
        let text = AuditHead.signedText(sequence: head.sequence, at: head.at, hash: head.hash)
        // While the service key is rotated, heads of both keys are the service's.
        return try key.allDerived(for: Self.purpose).contains { seed in
            try Self.signer(seed).publicKey.isValidSignature(head.signature, for: Array(text.utf8))
        }
    }

    private static let purpose = "synheart-auth/audit-head/v1"

    private func signer() throws -> Curve25519.Signing.PrivateKey { try Self.signer(key.derived(for: Self.purpose)) }

    private static func signer(_ seed: SymmetricKey) throws -> Curve25519.Signing.PrivateKey {
        try Curve25519.Signing.PrivateKey(rawRepresentation: seed.withUnsafeBytes { Array($0) })
    }
}
