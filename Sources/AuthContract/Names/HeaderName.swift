/// The contract's header field names as the SDK and the service write them. Readers ignore case.
public enum HeaderName {
    /// The id of the app. Both schemes.
    public static let appID = "X-App-ID"
    /// The id of the device. Both schemes.
    public static let deviceID = "X-Device-ID"
    /// Scheme 1: the signature, base64 of DER.
    public static let signature = "X-Synheart-Signature"
    /// Scheme 1: the time of signing, 10 digits of unix seconds.
    public static let timestamp = "X-Synheart-Timestamp"
    /// Scheme 1: a version 4 UUID, new for each request.
    public static let nonce = "X-Synheart-Nonce"
    /// Scheme 1: always `1`. It selects the scheme.
    public static let signatureVersion = "X-Synheart-Sig-Version"
    /// Scheme 2: the SHA-256 of the body (RFC 9530), even of an empty one.
    public static let contentDigest = "Content-Digest"
    /// Scheme 2: the components and parameters of the signature (RFC 9421 section 4.1). It selects the scheme.
    public static let signatureInput = "Signature-Input"
    /// Scheme 2: the signature (RFC 9421 section 4.2).
    public static let messageSignature = "Signature"
    /// In a request: an App Attest assertion, base64. In an answer: the path needs an assertion, and `prefix` names the
    /// path prefix that demands it, if any.
    public static let assertion = "X-Synheart-Assertion"
    /// Asks for development mode, with the value `true`. It grants nothing by itself.
    public static let developmentMode = "X-Synheart-Dev-Mode"
    /// The service's clock in unix seconds, in every answer.
    public static let serverTime = "X-Synheart-Server-Time"
    /// In an answer to a signed request: the demand to rotate the key, with its deadline and its reason.
    public static let rotate = "X-Synheart-Rotate"
    /// The code of a refusal, for clients behind a gateway that replaces the body.
    public static let error = "X-Synheart-Error"
    /// The credential of a gateway that forwards requests.
    public static let serviceCredential = "X-Synheart-Service-Credential"
    /// The id of the request, in every answer.
    public static let requestID = "X-Request-ID"
}
