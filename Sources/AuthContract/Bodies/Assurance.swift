public import StrictJSON

/// What a device has proven, and by whom.
public struct Assurance: WireBody, Hashable {
    /// Who vouches for the app.
    public enum App: String, Sendable, Hashable, CaseIterable {
        case appAttest = "app-attest"
        case appAttestDevelopment = "app-attest-development"
        case playIntegrity = "play-integrity"
        case none, development, test
    }

    /// What vouches for the key.
    public enum Key: String, Sendable, Hashable, CaseIterable {
        case strongbox, tee
        case appVouched = "app-vouched"
        case rotated, unattested
    }

    public var app: App
    public var key: Key
    /// What the provider said beside it, such as `MEETS_STRONG_INTEGRITY`.
    public var labels: [String]

    /// Assurance of its parts.
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
