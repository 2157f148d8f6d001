internal import AppAttest
public import AuthContract
internal import Bytes

/// The roots that an operator trusts in addition to the built-in ones.
public struct AddedRoots: Sendable, Hashable {
    /// The roots of the operator's files, in the order in which they were added, without those in ``expired``. Some may be
    /// built in.
    public private(set) var all: [AddedRoot] = []
    /// Expired roots that were left out. They are not trusted.
    public private(set) var expired: [AddedRoot] = []
    /// Removed roots whose removal the audit log does not record yet.
    private(set) var unrecorded: [AddedRoot] = []

    /// The largest number of certificates in one file.
    public static let maximumCount = 16

    /// No roots.
    public init() {}

    /// Adds the roots of a file.
    ///
    /// - Parameters:
    ///   - text: the file, PEM.
    ///   - use: what its roots sign.
    ///   - now: the time at which no root may have expired, except one that is built in.
    ///   - leavesOutExpired: whether an expired root is left out (``expired``) instead of refused.
    /// - Throws: `ContractError` for a file that has anything but 1 to ``maximumCount`` roots for this use, and for a key that is
    ///   listed twice and is not built in.
    public mutating func add(
        _ text: String, for use: AddedRoot.Use, at now: UnixTime, leavingOutExpired leavesOutExpired: Bool = false
    ) throws(ContractError) {
        guard let blocks = PEM.blocks(in: text, label: "CERTIFICATE"), !blocks.isEmpty, Self.has(text, only: blocks)
        else {
            throw ContractError(
                "the file has no certificates in PEM, or something else too: it must have only blocks of -----BEGIN CERTIFICATE-----. If no root is left, remove the setting"
            )
        }
        guard blocks.count <= Self.maximumCount else {
            throw ContractError("the file has \(blocks.count) certificates, and \(Self.maximumCount) are allowed")
        }
        for (index, der) in blocks.enumerated() {
            do throws(ContractError) {
                let root = try AddedRoot(der: der, for: use)
                guard root.isBuiltIn || root.notAfter >= now else {
                    guard leavesOutExpired else {
                        throw ContractError(
                            "\(root.subject): expired at \(root.notAfter.iso8601): remove it, or add its successor")
                    }
                    expired.append(root)
                    continue
                }
                if !root.isBuiltIn, let known = all.first(where: { $0.keyDigest == root.keyDigest }) {
                    throw ContractError(
                        "\(root.subject): has the key of \(known.subject) in \(known.use.rawValue): a key is listed once, for one use"
                    )
                }
                all.append(root)
            } catch {
                throw ContractError("certificate \(index + 1): \(error.description)")
            }
        }
    }

    /// Whether a text contains only these blocks and white space. The parser would skip other text, and with it a block with a
    /// damaged marker.
    private static func has(_ text: String, only blocks: [[UInt8]]) -> Bool {
        func withoutSpace(_ text: String) -> [UInt8] { text.utf8.filter { ![0x09, 0x0A, 0x0D, 0x20].contains($0) } }
        return withoutSpace(text) == withoutSpace(blocks.map { PEM.encode($0, label: "CERTIFICATE") }.joined())
    }

    /// The roots to trust while `others` replaces this set and the audit log does not record the change yet: those in both sets.
    func keeping(_ others: AddedRoots) -> AddedRoots {
        var kept = AddedRoots()
        kept.all = all.filter { others.all.contains($0) }
        kept.expired = others.expired
        kept.unrecorded = (unrecorded + added).filter { !others.added.contains($0) }
        return kept
    }

    /// The roots that are not built in.
    public var added: [AddedRoot] { all.filter { !$0.isBuiltIn } }

    /// The roots for one use that are not built in.
    func added(for use: AddedRoot.Use) -> [AddedRoot] { added.filter { $0.use == use } }

    /// Apple's roots in PEM that are not built in; nil: there are none.
    var applePEM: String? {
        let roots = added(for: .appleAttestations) + added(for: .appleReceipts)
        return roots.isEmpty ? nil : roots.map(\.pem).joined()
    }

    /// Verifies receipts under Apple's built-in root and the added ones; nil: no root of receipts was added.
    var receiptVerifier: ReceiptVerifier? {
        let roots = added(for: .appleReceipts)
        return roots.isEmpty
            ? nil
            : TrustAnchors(pem: roots.map(\.pem).joined()).map {
                // `TrustAnchors` has the roots for attestations too. `ReceiptVerifier` uses only those for receipts.
                ReceiptVerifier(trustAnchors: .apple.adding($0))
            }
    }
}
