public import StrictJSON

/// What a device has proven, and who confirmed it.
public struct Assurance: WireBody, Hashable {
    /// Who attested the app.
    public enum App: String, Sendable, Hashable, CaseIterable {
        case appAttest = "app-attest"
        case appAttestDevelopment = "app-attest-development"
        case playIntegrity = "play-integrity"
        case none, development, test
    }

    /// What protects the key, or who attested it.
    public enum Key: String, Sendable, Hashable, CaseIterable {
        case strongbox, tee
        case appVouched = "app-vouched"
        case rotated, unattested
    }

    public var app: App
    public var key: Key
    /// The provider's own labels, such as `MEETS_STRONG_INTEGRITY`.
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
