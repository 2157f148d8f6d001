internal import AuthContract

/// The name of a key in the key store. An identity has two names: `synheart_auth_{app_id}`, and the same with `_next` appended.
///
/// The identity's record has the name of the current key. A rotation creates its key under the other name, and takes effect by
/// one atomic write of the record. Renaming the key would not be atomic with that write, and the Android Keystore cannot rename.
public struct KeyAlias: Sendable, Hashable, CustomStringConvertible {
    /// The name.
    public let text: String

    private init(text: String) { self.text = text }

    /// The name of the first key.
    static func primary(_ appID: AppID) -> KeyAlias { KeyAlias(text: "synheart_auth_\(appID.text)") }

    /// The name of the key that the first rotation makes.
    static func next(_ appID: AppID) -> KeyAlias { KeyAlias(text: "synheart_auth_\(appID.text)_next") }

    /// Both names.
    static func both(_ appID: AppID) -> [KeyAlias] { [.primary(appID), .next(appID)] }

    /// A key outside the SDK's identities, such as the runtime's `synheart_device_{device_id}`.
    package static func foreign(_ text: String) -> KeyAlias { KeyAlias(text: text) }

    /// Reads an alias of an app; nil for any other name.
    static func named(_ text: String, of appID: AppID) -> KeyAlias? { both(appID).first { $0.text == text } }

    /// The other name.
    static func other(than alias: KeyAlias, of appID: AppID) -> KeyAlias {
        alias == .primary(appID) ? .next(appID) : .primary(appID)
    }

    /// The name.
    public var description: String { text }
}
