/// The version of the SDK, by semantic versioning. `Checks/documentation/version.py` compares the version of every package with
/// it.
package enum SDKVersion {
    /// A `StaticString`, because callers in C may keep the pointer to its bytes.
    package static let text: StaticString = "1.0.0"

    /// The `User-Agent` (RFC 9110 section 10.1.5) of the SDK's own requests. A request of the app has the
    /// `User-Agent` of the app or of its transport.
    static let userAgent = "synheart-auth/\(text) (swift)"
}
