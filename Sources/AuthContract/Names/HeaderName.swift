/// The contract's header field names as the SDK and the service write them. Readers ignore case.
public enum HeaderName {
    public static let appID = "X-App-ID"
    public static let deviceID = "X-Device-ID"
    public static let signature = "X-Synheart-Signature"
    public static let timestamp = "X-Synheart-Timestamp"
    public static let nonce = "X-Synheart-Nonce"
    public static let signatureVersion = "X-Synheart-Sig-Version"
    public static let contentDigest = "Content-Digest"
    public static let signatureInput = "Signature-Input"
    /// The `Signature` field of RFC 9421.
    public static let messageSignature = "Signature"
    public static let assertion = "X-Synheart-Assertion"
    public static let developmentMode = "X-Synheart-Dev-Mode"
    public static let serverTime = "X-Synheart-Server-Time"
    public static let rotate = "X-Synheart-Rotate"
    /// The code of a refusal, for clients behind a gateway that replaces the body.
    public static let error = "X-Synheart-Error"
    public static let requestID = "X-Request-ID"
}
