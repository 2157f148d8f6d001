/// A JSON Web Signature in compact form (RFC 7515 section 7.1): the form of a JSON Web Token.
public enum CompactJWS {
    /// Signs a token.
    ///
    /// - Parameters:
    ///   - header: the JSON text of the protected header.
    ///   - payload: the payload; for a JSON Web Token the JSON text of the claims.
    ///   - signature: signs the bytes that it is given, and returns the signature in the form of the header's `alg`.
    public static func sign(
        header: [UInt8], payload: [UInt8], by signature: (_ input: [UInt8]) throws -> [UInt8]
    ) rethrows -> String {
        let input = Base64.url.encode(header) + "." + Base64.url.encode(payload)
        return input + "." + Base64.url.encode(try signature(Array(input.utf8)))
    }
}
