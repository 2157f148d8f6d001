internal import AuthContract
internal import HTTPTypes

/// The header fields that the server reads and writes, as names of the HTTP library.
extension HTTPField.Name {
    static let serverTime = named(HeaderName.serverTime)
    static let requestID = named(HeaderName.requestID)
    static let appID = named(HeaderName.appID)
    static let deviceID = named(HeaderName.deviceID)
    static let timestamp = named(HeaderName.timestamp)
    static let signatureInput = named(HeaderName.signatureInput)
    static let developmentMode = named(HeaderName.developmentMode)
    static let host = named("Host")
    static let forwardedFor = named("X-Forwarded-For")
    static let forwardedProto = named("X-Forwarded-Proto")
    static let forwardedHost = named("X-Forwarded-Host")

    // Every name above is a valid token (RFC 9110), so `.expect` is never used. If a name were not valid, every test that
    // uses the field would fail.
    private static func named(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .expect }
}
