internal import AuthContract
internal import Crypto
internal import Foundation

/// The keys that encrypt secrets at rest. The first key seals. Every key opens. They are kept in a file next to the database
/// or in a secret store, never in the database.
///
/// Usually there is one key. During a rotation there are two: the new key is first, and the old key still opens.
public struct ServiceKey: Sendable {
    private let keys: [SymmetricKey]

    /// The most keys that may be listed.
    public static let maximum = 8

    /// One key of 32 bytes; nil for another length.
    public init?(_ bytes: [UInt8]) { self.init([bytes]) }

    /// Several keys of 32 bytes. The first one seals. Nil for an empty list, more than ``maximum`` keys, a repeated key, or a
    /// key of another length.
    public init?(_ list: [[UInt8]]) {
        guard (1...Self.maximum).contains(list.count), Set(list).count == list.count,
            list.allSatisfy({ $0.count == 32 })
        else { return nil }
        keys = list.map { SymmetricKey(data: $0) }
    }

    /// The check value of each key, in order. The database keeps check values to recognize keys. They do not reveal the keys.
    public var checks: [ServiceKeyCheck] {
        keys.map { key in
            let bytes = Self.derived(from: key, for: "synheart-auth/service-key-check/v1").withUnsafeBytes { Array($0) }
            return ServiceKeyCheck(bytes)
        }
    }

    /// Seals with AES-256-GCM. `context` names the purpose of the text. Opening it for another context fails.
    func seal(_ text: [UInt8], context: String) throws -> [UInt8] {
        guard let key = keys.first,
            let combined = try AES.GCM.seal(text, using: key, authenticating: Array(context.utf8)).combined
        else { throw StoreError(.unreadable, "a secret could not be sealed") }
        return Array(combined)
    }

    /// Opens a text that one of the keys sealed for `context`. Throws for anything else.
    func open(_ sealed: [UInt8], context: String) throws(StoreError) -> [UInt8] {
        try opened(sealed, context: context).text
    }

    /// Opens a text that one of the keys sealed for `context`, and returns the index of that key.
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

    /// A key for another purpose, derived from the key that seals.
    func derived(for purpose: String) -> SymmetricKey { allDerived(for: purpose)[0] }

    /// A key for another purpose, derived from each key, in order. Never empty.
    func allDerived(for purpose: String) -> [SymmetricKey] { keys.map { Self.derived(from: $0, for: purpose) } }

    private static func derived(from key: SymmetricKey, for purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array(purpose.utf8), outputByteCount: 32)
    }
}

/// Identifies a service key without revealing it: 32 bytes of HKDF-SHA256, in base64url.
public struct ServiceKeyCheck: Sendable, Hashable, CustomStringConvertible {
    /// The text that the database stores.
    public let text: String

    init(_ bytes: [UInt8]) { text = Base64.url.encode(bytes) }

    /// Parses a check value. Nil for any other text.
    public init?(_ text: String) {
        guard let bytes = Base64.url.decode(text), bytes.count == 32 else { return nil }
        self.init(bytes)
    }

    /// The first characters, enough for people to tell keys apart.
    public var description: String { String(text.prefix(8)) }
}
