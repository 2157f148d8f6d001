internal import AuthContract
internal import StrictJSON

/// The documents by which backends and gateways find the keys of an issuer: OpenID Connect Discovery 1.0 and RFC 8414.
enum IssuerMetadata {
    /// The metadata of an issuer, which both documents contain. It names no endpoints: a device gets its tokens from
    /// `POST /auth/v1/token`, which is not an OAuth endpoint.
    static func json(of issuer: RequestOrigin) -> JSONObject {
        JSONObject([
            ("issuer", .string(issuer.description)),
            ("jwks_uri", .string(issuer.description + Route.wellKnownKeySet.rawValue)),
            ("id_token_signing_alg_values_supported", .array(["ES256"])),
            ("subject_types_supported", .array(["public"])), ("response_types_supported", .array(["none"])),
        ])
    }
}
