/// Text that no log, description or listing shows.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text itself, for the one place that needs it.
    public let exposed: String

    /// A secret.
    public init(_ text: String) { exposed = text }

    public var description: String { "(secret)" }
    public var debugDescription: String { "(secret)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret {
    func text(in form: AppRecord.SecretsForm) -> String {
        switch form {
        case .plain: exposed
        case .masked: description
        }
    }
}
