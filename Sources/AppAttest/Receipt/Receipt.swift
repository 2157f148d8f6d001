/// A receipt read, and nothing of it verified: PKCS#7 SignedData in BER around the fields.
public struct Receipt: Sendable {
    /// Bytes beyond which nothing is read. Real receipts have 3.5 to 4 kB.
    public static let maximumSize = 16 * 1024

    let signedData: SignedData
    /// What it says.
    public let fields: ReceiptFields

    /// Reads a receipt, out of an attestation or from Apple's server (there it comes in base64).
    public init(parsing bytes: some Collection<UInt8>) throws(AppAttestError) {
        guard bytes.count <= Self.maximumSize else {
            throw AppAttestError(.tooLarge, .format, "\(bytes.count) bytes, more than \(Self.maximumSize)")
        }
        signedData = try SignedData(parsing: Array(bytes))
        fields = try ReceiptFields(parsing: signedData.content)
    }

    /// The receipt at the front of `bytes`, for copies that were stored with something after them.
    ///
    /// A receipt holds its own length; what follows it is covered by no signature and is no part of it.
    public static func prefix(of bytes: [UInt8]) -> [UInt8] {
        guard bytes.count <= maximumSize, let length = BERExtent.ofFirstItem(in: bytes) else { return bytes }
        return Array(bytes[..<length])
    }
}
