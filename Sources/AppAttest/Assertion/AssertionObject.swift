internal import CBOR

/// An assertion, strictly parsed but not verified: CBOR `{signature, authenticatorData}`.
public struct AssertionObject: Sendable {
    /// The largest assertion that is parsed, in bytes. Real ones have 110 to 300.
    public static let maximumSize = 4 * 1024

    /// ECDSA in DER.
    package let signature: [UInt8]
    /// The authenticator data. The signature covers it and the client data hash.
    package let authenticatorData: AuthenticatorData

    /// The counter that the assertion claims, unverified.
    public var claimedCounter: UInt32 { authenticatorData.counter }

    /// Parses the result of `DCAppAttestService.generateAssertion(_:clientDataHash:)`.
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
