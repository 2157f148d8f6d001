/// The parameters of a scheme 2 signature (RFC 9421 section 2.3): `created`, `nonce`, `keyid`, `tag`, `alg` and no others. The
/// signature covers them.
public struct SchemeTwoParameters: Sendable, Hashable {
    /// The time when the signature was made, on the signer's clock.
    public let created: UnixTime
    /// The nonce: 1 to 128 visible ASCII characters, opaque to the verifier.
    public let nonce: String
    /// The RFC 7638 thumbprint of the key, 43 characters.
    public let keyID: String

    /// The signature's member of `Signature-Input`, as sent and signed. The parameters keep the signer's order.
    let input: String

    /// The parameters of a new signature. Refuses a time before 1970 or of more than 15 digits.
    public init(created: UnixTime, nonce: RequestNonce, key: DevicePublicKey) throws(ContractError) {
        try self.init(
            StructuredField.InnerList(
                SchemeTwo.coveredComponents,
                [
                    .init("created", .integer(created.seconds)), .init("nonce", .string(nonce.text)),
                    .init("keyid", .string(key.thumbprint)), .init("tag", .string(SchemeTwo.tag)),
                    .init("alg", .string(SchemeTwo.algorithm)),
                ]))
    }

    /// Reads received parameters.
    ///
    /// - Throws: `unsupportedSigVersion` for other components, another tag, algorithm or set of parameters; `invalidRequest` for
    ///   a malformed value.
    init(_ input: StructuredField.InnerList) throws(ContractError) {
        guard input.items == SchemeTwo.coveredComponents else {
            throw ContractError("the signature must cover our components, in our order", code: .unsupportedSigVersion)
        }
        var values: [String: StructuredField.BareItem] = [:]
        for parameter in input.parameters { values[parameter.key] = parameter.value }
        guard values.count == 5, values["tag"]?.string == SchemeTwo.tag, values["alg"]?.string == SchemeTwo.algorithm,
            let created = values["created"], let nonce = values["nonce"], let keyID = values["keyid"]
        else {
            throw ContractError(
                "the signature must have the parameters created, nonce, keyid, tag and alg of our profile",
                code: .unsupportedSigVersion)
        }
        guard let seconds = created.integer, Self.times.contains(seconds) else {
            throw ContractError("created must be unix seconds")
        }
        guard let nonce = nonce.string, (1...128).contains(nonce.utf8.count), nonce.utf8.allSatisfy(\.isVisible) else {
            throw ContractError("the nonce must be 1 to 128 visible characters")
        }
        guard let keyID = keyID.string, Base64.url.decode(keyID)?.count == 32 else {
            throw ContractError("keyid must be the RFC 7638 thumbprint of the key")
        }
        self.created = UnixTime(seconds)
        self.nonce = nonce
        self.keyID = keyID
        self.input = input.text
    }

    // The range of an RFC 9651 Integer, from the epoch on.
    private static let times: ClosedRange<Int64> = 0...999_999_999_999_999
}
