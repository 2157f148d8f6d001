public import AuthContract
public import StrictJSON

/// The documents by which backends and gateways find the keys of an issuer: OpenID Connect Discovery 1.0 and RFC 8414.
public enum IssuerMetadata {
    /// The metadata of an issuer; the same in both documents. It names no endpoint, because nobody can ask for tokens in the way
    /// that OAuth describes.
    public static func json(of issuer: RequestOrigin) -> JSONObject {
        JSONObject([
            ("issuer", .string(issuer.description)),
            ("jwks_uri", .string(issuer.description + Route.wellKnownKeySet.rawValue)),
            ("id_token_signing_alg_values_supported", .array(["ES256"])),
            ("subject_types_supported", .array(["public"])), ("response_types_supported", .array(["none"])),
        ])
    }
}
