internal import CBOR

/// An assertion read, and nothing of it verified: CBOR `{signature, authenticatorData}`, read strictly.
public struct AssertionObject: Sendable {
    /// Bytes beyond which nothing is read. Real assertions have 110 to 300.
    public static let maximumSize = 4 * 1024

    /// ECDSA in DER.
    package let signature: [UInt8]
    /// What the signature covers, with the client data hash.
    package let authenticatorData: AuthenticatorData

    /// The counter that the assertion claims, for a look before the key is known.
    public var claimedCounter: UInt32 { authenticatorData.counter }

    /// Reads what `DCAppAttestService.generateAssertion(_:clientDataHash:)` gave.
    public init(parsing bytes: some Collection<UInt8>) throws(AppAttestError) {
        let map = try readObject(Array(bytes), maximumSize: Self.maximumSize)
        guard map.count == 2, let signature = map["signature"]?.bytes,
            let authenticatorData = map["authenticatorData"]?.bytes
        else {
            throw AppAttestError(.malformedObject, .format, "members other than signature and authenticatorData")
        }
        self.signature = signature
        self.authenticatorData = try AuthenticatorData(assertion: authenticatorData)
    }
}
