/// Scheme 2: a fixed profile of HTTP Message Signatures (RFC 9421). Nothing in it is negotiable.
public enum SchemeTwo {
    /// The label of our signature in `Signature-Input` and `Signature`.
    public static let label = "synheart"
    /// The `tag` parameter, which names the profile.
    public static let tag = "synheart-auth-v2"
    /// The `alg` parameter: ECDSA P-256 with SHA-256, r || s on the wire (RFC 9421 section 3.3.4).
    public static let algorithm = "ecdsa-p256-sha256"

    /// The covered components: all of these, in this order.
    public enum Component: String, Sendable, Hashable, CaseIterable {
        /// The method, as sent (RFC 9421 section 2.2.1).
        case method = "@method"
        /// The scheme of the target, in lower case (section 2.2.4).
        case scheme = "@scheme"
        /// The normalized authority of the target (section 2.2.3).
        case authority = "@authority"
        /// The path, as sent, not decoded (section 2.2.6).
        case path = "@path"
        /// The query with its `?`; `?` alone if there is none (section 2.2.7).
        case query = "@query"
        /// The SHA-256 of the body (RFC 9530).
        case contentDigest = "content-digest"
        /// The id of the app.
        case appID = "x-app-id"
        /// The id of the device.
        case deviceID = "x-device-id"

        /// The component's name as in the signature base (RFC 9421 section 2).
        var identifier: String { StructuredField.Item(.string(rawValue)).text }
    }

    /// The components as `Signature-Input` lists them.
    static let coveredComponents = Component.allCases.map { StructuredField.Item(.string($0.rawValue)) }
}
