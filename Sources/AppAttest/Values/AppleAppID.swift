internal import Crypto

/// The App ID of an app: the prefix (usually the team) and the bundle id, joined by a dot. On macOS, the team and the
/// signing identifier. It is App Attest's relying party id.
public struct AppleAppID: Sendable, Hashable {
    /// The App ID as text, such as `1234567890.com.example.app`.
    public let text: String
    /// SHA-256 of the text, as in authenticator data. Stored, because every verification compares it.
    let hash: [UInt8]

    /// Nil if `text` is not a prefix and an identifier joined by a dot, in at most 255 visible ASCII characters.
    public init?(_ text: String) {
        guard text.utf8.count <= 255, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let dot = text.firstIndex(of: "."), dot != text.startIndex, text.index(after: dot) != text.endIndex
        else { return nil }
        self.text = text
        self.hash = Array(SHA256.hash(data: Array(text.utf8)))
    }
}

extension AppleAppID: CustomStringConvertible {
    /// The text.
    public var description: String { text }
}
