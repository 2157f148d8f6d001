internal import AppAttest
public import AuthContract
internal import Bytes

/// The roots that an operator trusts in addition to the built-in ones.
public struct AddedRoots: Sendable, Hashable {
    /// All of them, by setting and then as in the files. Those that are built in are among them.
    public private(set) var all: [AddedRoot] = []

    /// The largest number of certificates in one file.
    public static let maximumCount = 16

    /// No roots.
    public init() {}

    /// Adds the roots of a file.
    ///
    /// - Parameters:
    ///   - text: the file, PEM.
    ///   - use: what its roots sign.
    ///   - now: the time at which no root may have expired.
    /// - Throws: `ContractError` for a file that has anything but roots for this use, and for a key that is listed twice.
    public mutating func add(_ text: String, for use: AddedRoot.Use, at now: UnixTime) throws(ContractError) {
        guard let blocks = PEM.blocks(in: text, label: "CERTIFICATE"), !blocks.isEmpty else {
            throw ContractError(
                "the file has no certificates in PEM, or something else too: it must have only blocks of -----BEGIN CERTIFICATE-----"
            )
        }
        guard blocks.count <= Self.maximumCount else {
            throw ContractError("the file has \(blocks.count) certificates, and \(Self.maximumCount) are allowed")
        }
        for (index, der) in blocks.enumerated() {
            do throws(ContractError) {
                let root = try AddedRoot(der: der, for: use, at: now)
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
                // Only its roots of receipts are used.
                ReceiptVerifier(trustAnchors: .apple.adding($0))
            }
    }
}
