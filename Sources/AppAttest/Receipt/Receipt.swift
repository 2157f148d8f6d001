/// A receipt, parsed but not verified: PKCS#7 SignedData in BER around the fields.
public struct Receipt: Sendable {
    /// The largest receipt that is parsed, in bytes. Real ones have 3.5 to 4 kB.
    public static let maximumSize = 16 * 1024

    let signedData: SignedData
    /// The fields of the receipt, unverified.
    public let fields: ReceiptFields

    /// Parses a receipt from an attestation, or from Apple's server after decoding its base64.
    public init(parsing bytes: some Collection<UInt8>) throws(AppAttestError) {
        guard bytes.count <= Self.maximumSize else {
            throw AppAttestError(.tooLarge, .format, "\(bytes.count) bytes, more than \(Self.maximumSize)")
        }
        signedData = try SignedData(parsing: Array(bytes))
        fields = try ReceiptFields(parsing: signedData.content)
    }

    /// The receipt at the start of `bytes`, for receipts that were stored with other bytes after them.
    ///
    /// The encoding of a receipt contains its length. No signature covers the bytes after the receipt. Returns `bytes`
    /// unchanged if they are more than ``maximumSize``, or do not start with a complete item.
    public static func prefix(of bytes: [UInt8]) -> [UInt8] {
        guard bytes.count <= maximumSize, let length = BERExtent.ofFirstItem(in: bytes) else { return bytes }
        return Array(bytes[..<length])
    }
}
