public import AuthContract
internal import Crypto

/// Text that no log, description or listing shows.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text itself, only for the code that needs it.
    public let exposed: String

    /// A secret.
    public init(_ text: String) { exposed = text }

    public var description: String { "(secret)" }
    public var debugDescription: String { "(secret)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Writes masks in place of secrets. A mask distinguishes secrets without revealing them: it has the first 8 bytes of an
/// HMAC-SHA256 with a key derived from the service key.
public struct SecretMask: Sendable {
    private let key: SymmetricKey

    init(_ key: ServiceKey) { self.key = key.derived(for: "synheart-auth/secret-mask/v1") }

    /// The mask of a secret, such as `(secret 0123456789abcdef)`.
    public func text(of secret: Secret) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(secret.exposed.utf8), using: key)
        return Self.prefix + Hexadecimal.encode(Array(code.prefix(8))) + ")"
    }

    /// The secret among `secrets` that a mask stands for. Nil if the text is no mask.
    ///
    /// - Throws: `ContractError` unless the mask stands for exactly one of the secrets. A mask without a code, as older versions
    ///   wrote it, stands for the only secret.
    public func unmask(_ text: String, among secrets: [Secret]) throws(ContractError) -> Secret? {
        guard text.hasPrefix(Self.prefix) || text == Secret("").description else { return nil }
        let matching = text.hasPrefix(Self.prefix) ? secrets.filter { self.text(of: $0) == text } : secrets
        guard let secret = matching.first, Set(matching).count == 1 else {
            throw ContractError(
                "\(text.prefix(32)) stands for no secret of this record: read it again, or give the secret")
        }
        return secret
    }

    private static let prefix = "(secret "
}
