internal import AuthContract
internal import Crypto
internal import Foundation

/// The keys that seal secrets at rest: the first one seals, each of them opens. They live beside the database or in a secret
/// store, never in the database.
///
/// There is one key, but while it is rotated: then the next one comes first, and the one before it still opens.
public struct ServiceKey: Sendable {
    private let keys: [SymmetricKey]

    /// As many keys as may be listed.
    public static let maximum = 8

    /// One key of 32 bytes; nil for another length.
    public init?(_ bytes: [UInt8]) { self.init([bytes]) }

    /// Several keys of 32 bytes, the one that seals first; nil where there is none, too many, one twice, or of another length.
    public init?(_ list: [[UInt8]]) {
        guard (1...Self.maximum).contains(list.count), Set(list).count == list.count,
            list.allSatisfy({ $0.count == 32 })
        else { return nil }
        keys = list.map { SymmetricKey(data: $0) }
    }

    /// What the database keeps of each key, in order: it says which key is meant and helps nobody to find it.
    public var checks: [ServiceKeyCheck] {
        keys.map { key in
            let bytes = Self.derived(from: key, for: "synheart-auth/service-key-check/v1").withUnsafeBytes { Array($0) }
            return ServiceKeyCheck(bytes)
        }
    }

    /// AES-256-GCM; `context` says what the text is for, and opening it for anything else fails.
    func seal(_ text: [UInt8], context: String) throws -> [UInt8] {
        guard let key = keys.first,
            let combined = try AES.GCM.seal(text, using: key, authenticating: Array(context.utf8)).combined
        else { throw StoreError(.unreadable, "a secret could not be sealed") }
        return Array(combined)
    }

    /// Opens what one of the keys sealed for `context`; throws for anything else.
    func open(_ sealed: [UInt8], context: String) throws(StoreError) -> [UInt8] {
        try opened(sealed, context: context).text
    }

    /// Opens what one of the keys sealed for `context`, and says which.
    func opened(_ sealed: [UInt8], context: String) throws(StoreError) -> (text: [UInt8], key: Int) {
        if let box = try? AES.GCM.SealedBox(combined: sealed) {
            for (number, key) in keys.enumerated() {
                if let text = try? AES.GCM.open(box, using: key, authenticating: Array(context.utf8)) {
                    return (Array(text), number)
                }
            }
        }
        throw StoreError(.unreadable, "a secret was sealed with another service key, or is damaged")
    }

    /// A key of its own for another purpose, from the key that seals.
    func derived(for purpose: String) -> SymmetricKey { allDerived(for: purpose)[0] }

    /// A key of its own for another purpose, from each key in order. Never empty.
    func allDerived(for purpose: String) -> [SymmetricKey] { keys.map { Self.derived(from: $0, for: purpose) } }

    private static func derived(from key: SymmetricKey, for purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array(purpose.utf8), outputByteCount: 32)
    }
}

/// Tells a service key from another one without saying anything of it: 32 bytes of HKDF-SHA256, in base64url.
public struct ServiceKeyCheck: Sendable, Hashable, CustomStringConvertible {
    /// As it is kept.
    public let text: String

    init(_ bytes: [UInt8]) { text = Base64.url.encode(bytes) }

    /// Reads a check value; nil for anything that is none.
    public init?(_ text: String) {
        guard let bytes = Base64.url.decode(text), bytes.count == 32 else { return nil }
        self.init(bytes)
    }

    /// The beginning, by which people tell keys apart.
    public var description: String { String(text.prefix(8)) }
}
