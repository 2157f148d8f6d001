internal import AuthContract

/// The name of a key in the key store: `synheart_auth_{app_id}`, or that with `_next` appended.
///
/// Which of the two is current is written in the identity's record. A rotation makes its key under the other name and
/// becomes effective by one atomic write of the record: a rename inside a key store would not be atomic with it, and the
/// Android Keystore has none.
public struct KeyAlias: Sendable, Hashable, CustomStringConvertible {
    /// The name.
    public let text: String

    private init(text: String) { self.text = text }

    /// The name of an app's first key.
    static func primary(_ appID: AppID) -> KeyAlias { KeyAlias(text: "synheart_auth_\(appID.text)") }

    /// The name of a key that the first rotation makes.
    static func next(_ appID: AppID) -> KeyAlias { KeyAlias(text: "synheart_auth_\(appID.text)_next") }

    /// Both names of an app.
    static func both(_ appID: AppID) -> [KeyAlias] { [.primary(appID), .next(appID)] }

    /// The name of a key that belongs to no identity of the SDK, such as the runtime's `synheart_device_{device_id}`.
    package static func foreign(_ text: String) -> KeyAlias { KeyAlias(text: text) }

    /// The alias of an app with this name, as it stands in a record.
    static func named(_ text: String, of appID: AppID) -> KeyAlias? { both(appID).first { $0.text == text } }

    /// The one of the two names that `alias` is not.
    static func other(than alias: KeyAlias, of appID: AppID) -> KeyAlias {
        alias == .primary(appID) ? .next(appID) : .primary(appID)
    }

    /// The name.
    public var description: String { text }
}
