public import StrictJSON

/// The assurance of a device: what it has proven, and who confirmed it.
public struct Assurance: WireBody, Hashable {
    /// The party that attested the app.
    public enum App: String, Sendable, Hashable, CaseIterable {
        /// Apple's App Attest, in its production environment.
        case appAttest = "app-attest"
        /// Apple's App Attest, in its development environment: a build signed for development.
        case appAttestDevelopment = "app-attest-development"
        /// Google's Play Integrity.
        case playIntegrity = "play-integrity"
        /// No provider attested the app: at most a key attestation was verified. An operator's approval of the device does
        /// not change this value.
        case none
        /// Development mode: no vendor was asked. Refused on channel `production`.
        case development
        /// A trust anchor of the app record vouches for the app, or Play Integrity sent a test response. Refused on channel `production`.
        case test
    }

    /// The protection of the key, or the party that vouches for the key.
    public enum Key: String, Sendable, Hashable, CaseIterable {
        /// Android key attestation: the key is in StrongBox, a secure element.
        case strongbox
        /// Android key attestation: the key is in the trusted execution environment.
        case tee
        /// The verified proof named the key, but no trusted attestation names the key's protection.
        case appVouched = "app-vouched"
        /// The previous key signed a rotation to this key, and the rotation did not attest this key.
        case rotated
        /// Nothing proves the key: this is development mode, or no proof was verified. An operator's approval of the device
        /// does not change this value.
        case unattested
    }

    /// The party that attested the app, at the last registration or rotation that attested it.
    public var app: App
    /// The protection of the current key, or the party that vouches for the key.
    public var key: Key
    /// The provider's own labels, such as `MEETS_STRONG_INTEGRITY`, and labels of the service, such as `rebound` (a new
    /// App Attest key replaced the stored one).
    public var labels: [String]

    /// Memberwise initializer.
    public init(app: App, key: Key, labels: [String] = []) {
        self.app = app
        self.key = key
        self.labels = labels
    }

    public init(_ fields: JSONFields) throws {
        app = try fields.choice("app")
        key = try fields.choice("key")
        labels = try fields.optionalStrings("labels") ?? []
    }

    public var json: JSONObject {
        .of(
            ("app", .string(app.rawValue)), ("key", .string(key.rawValue)),
            ("labels", .array(labels.map { .string($0) })))
    }
}
