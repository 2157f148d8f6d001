public import AuthContract
internal import Bytes

/// Where private keys live: P-256, non-exportable where the platform can do it.
///
/// Calls may block: the SDK makes them one at a time, on a thread of its own, and waits 30 seconds. A call that has not returned by
/// then is left behind, and none of its kind is made until it has; others are made beside it.
public protocol KeyStore: Sendable {
    /// What guards the keys.
    var protection: KeyProtection { get }

    /// Whether `create` puts the challenge into a hardware attestation of the key, so that a key goes with one challenge.
    var attestsKeys: Bool { get }

    /// Makes a key, replacing one of the same name.
    ///
    /// `challenge` is the decoded challenge that a hardware key attestation has to name: it is fixed before the key exists.
    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey

    /// The public half of a key; nil only where there certainly is none.
    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey?

    /// Signs SHA-256 of the message.
    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature

    /// Signs with this key from here on without blocking; nil where only `sign` does it. What is signed after the key is
    /// gone throws as `sign` does.
    func signer(_ alias: KeyAlias) throws(KeyStoreError) -> KeySigner?

    /// Deletes a key; one that is not there counts as deleted.
    func delete(_ alias: KeyAlias) throws(KeyStoreError)
}

extension KeyStore {
    /// Not by itself.
    public var attestsKeys: Bool { false }

    /// Hardware blocks.
    public func signer(_ alias: KeyAlias) throws(KeyStoreError) -> KeySigner? { nil }
}

/// Signs SHA-256 of a message with one key, at once.
public typealias KeySigner = @Sendable (_ message: [UInt8]) throws(KeyStoreError) -> RequestSignature

/// What guards a key.
public enum KeyProtection: String, Sendable, Hashable, CaseIterable {
    /// Apple's Secure Enclave.
    case secureEnclave = "secure-enclave"
    /// The Android Keystore, or another store of the host's.
    case hostKeystore = "host-keystore"
    /// A file that whoever can read it can copy.
    case software
}

/// Why a key store did not do what it was asked.
public struct KeyStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the failure means for the identity.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// There is no such key any more.
        case notFound
        /// The operating system refuses the key for good: biometrics changed, permanently invalidated, unrecoverable.
        case invalidated
        /// Locked or busy; the key may be in order.
        case unavailable
        /// This device or build has no such store.
        case unsupported
        /// Anything else.
        case failed
    }

    /// What it means.
    public let code: Code
    /// The platform's own number (an OSStatus, an errno), for logs.
    public let status: Int?
    /// For logs.
    public let reason: String

    /// An error.
    public init(_ code: Code, status: Int? = nil, reason: String = "") {
        self.code = code
        self.status = status
        self.reason = reason
    }

    /// Whether the key is lost.
    public var isKeyLost: Bool { code == .notFound || code == .invalidated }

    /// For logs.
    public var description: String { "\(code.rawValue)\(status.map { " (\($0))" } ?? "") \(reason)" }
}

extension SynheartAuthError {
    /// The error of a key store whose key, where it is lost, cannot be the identity's own: that is `keyInvalidated`.
    static func keyStore(_ error: KeyStoreError, _ protection: KeyProtection) -> SynheartAuthError {
        if error.isKeyLost { return SynheartAuthError(.keyInvalidated, "the key is gone", cause: error) }
        if error.code == .unsupported, protection == .secureEnclave {
            return SynheartAuthError(.attestationUnavailable, error.reason, cause: error)
        }
        let isEnclave = protection == .secureEnclave
        if error.code == .unavailable {
            return SynheartAuthError(
                isEnclave ? .secureEnclaveUnavailable : .keyStoreUnavailable, error.description, cause: error)
        }
        return SynheartAuthError(isEnclave ? .secureEnclaveError : .keystoreError, error.description, cause: error)
    }
}
