internal import AuthContract
internal import Crypto
internal import Foundation

/// The key that seals secrets at rest. It lives beside the database or in a secret store, never in the database.
public struct ServiceKey: Sendable {
    private let key: SymmetricKey

    /// Reads 32 bytes; nil for another length.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// AES-256-GCM; `context` says what the text is for, and opening it for anything else fails.
    func seal(_ text: [UInt8], context: String) throws -> [UInt8] {
        guard let combined = try AES.GCM.seal(text, using: key, authenticating: Array(context.utf8)).combined else {
            throw StoreError(.unreadable, "a secret could not be sealed")
        }
        return Array(combined)
    }

    /// Opens what was sealed for `context`; throws for anything else.
    func open(_ sealed: [UInt8], context: String) throws(StoreError) -> [UInt8] {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let text = try? AES.GCM.open(box, using: key, authenticating: Array(context.utf8))
        else { throw StoreError(.unreadable, "a secret was sealed with another service key, or is damaged") }
        return Array(text)
    }

    /// A key of its own for another purpose.
    func derived(for purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array(purpose.utf8), outputByteCount: 32)
    }
}
