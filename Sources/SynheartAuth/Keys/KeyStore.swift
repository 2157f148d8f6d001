public import AuthContract
internal import Bytes

/// Keeps P-256 private keys, non-exportable if the platform supports it.
///
/// Calls may block. The SDK makes them one at a time, on a separate thread, and waits 30 seconds. After that it abandons the
/// call, and makes no other call of this kind until the abandoned one returns.
public protocol KeyStore: Sendable {
    /// The protection of the keys.
    var protection: KeyProtection { get }

    /// Whether `create` attests the key with the challenge, so that each key belongs to one challenge.
    var attestsKeys: Bool { get }

    /// Makes a key and replaces one of the same name.
    ///
    /// - Parameters:
    ///   - alias: The key's name.
    ///   - challenge: The decoded challenge that a hardware key attestation must name; nil if the key is not to be attested.
    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey

    /// The public half of a key; nil if the platform reports that there is no such key. The SDK does not believe that at once.
    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey?

    /// Signs SHA-256 of the message.
    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature

    /// A signer for this key that does not block; nil if only `sign` can sign. After the key is gone, the signer throws as
    /// `sign` does.
    func signer(_ alias: KeyAlias) throws(KeyStoreError) -> KeySigner?

    /// Deletes a key. Succeeds if there is no such key.
    func delete(_ alias: KeyAlias) throws(KeyStoreError)

    /// Throws unless canaries (a test item in the storage and a test key) prove that the platform works. The SDK calls
    /// this before it believes a suspicious answer about a key.
    ///
    /// The storage canary must be read back with its data, and a new item must be writable. The key canary is a key of
    /// the same kind and age, and must sign. If all canaries are gone together with the key, a new canary that works is
    /// sufficient proof.
    func checkCanaries(of alias: KeyAlias) throws(KeyStoreError)
}

extension KeyStore {
    /// The default: false.
    public var attestsKeys: Bool { false }

    /// The default: nil, because signing in hardware blocks.
    public func signer(_ alias: KeyAlias) throws(KeyStoreError) -> KeySigner? { nil }

    /// The default: succeeds, because the key store has no canaries (test items and keys). The SDK then believes a second
    /// suspicious answer at least two seconds later.
    public func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) {}
}

/// Signs SHA-256 of a message with one key, without blocking.
///
/// This is a structure around the closure, because a function type with typed throws needs iOS 18 as a generic
/// argument.
public struct KeySigner: Sendable {
    private let sign: @Sendable (_ message: [UInt8]) throws(KeyStoreError) -> RequestSignature

    /// Memberwise initializer.
    public init(_ sign: @escaping @Sendable (_ message: [UInt8]) throws(KeyStoreError) -> RequestSignature) {
        self.sign = sign
    }

    /// Signs SHA-256 of the message.
    public func callAsFunction(_ message: [UInt8]) throws(KeyStoreError) -> RequestSignature { try sign(message) }
}

/// The protection of a key.
public enum KeyProtection: String, Sendable, Hashable, CaseIterable {
    /// Apple's Secure Enclave.
    case secureEnclave = "secure-enclave"
    /// The Android Keystore, or another key store that the app provides.
    case hostKeystore = "host-keystore"
    /// A file. Every reader of the file can copy the key.
    case software
}

/// The failure of a key store: one answer of the platform. The SDK decides what follows for the identity (``Code``).
public struct KeyStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of answers. The SDK believes `notFound`, `failed` and codes that an app defines only after a second such
    /// answer at least two seconds later, and only if ``KeyStore/checkCanaries(of:)`` succeeds then.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The platform reports that the key does not exist.
        public static let notFound = Self(rawValue: "notFound")
        /// The platform documents that this error means a key that never works again, such as after a change of the enrolled
        /// biometrics. The SDK believes one such answer.
        public static let invalidated = Self(rawValue: "invalidated")
        /// The store is locked, locked out for a while, busy, restarted, or has an I/O error.
        public static let unavailable = Self(rawValue: "unavailable")
        /// This device or build has no such store.
        public static let unsupported = Self(rawValue: "unsupported")
        /// The app is built or configured wrongly, such as for an access group that it may not use. The SDK then throws
        /// `NOT_CONFIGURED` with the reason.
        public static let misconfigured = Self(rawValue: "misconfigured")
        /// Any other failure. The platform does not document that a retry helps.
        public static let failed = Self(rawValue: "failed")

        /// Every code of this version, in the order above.
        public static let allCases: [Self] = [
            .notFound, .invalidated, .unavailable, .unsupported, .misconfigured, .failed,
        ]
    }

    /// The kind of the answer.
    public let code: Code
    /// The platform's number (OSStatus, errno), for logs.
    public let status: Int?
    /// An explanation for logs.
    public let reason: String

    /// Memberwise initializer.
    public init(_ code: Code, status: Int? = nil, reason: String = "") {
        self.code = code
        self.status = status
        self.reason = reason
    }

    /// Whether this one answer proves that the key is lost.
    public var isKeyLost: Bool { code == .invalidated }

    /// Code, status and reason, for logs.
    public var description: String { "\(code.rawValue)\(status.map { " (\($0))" } ?? "") \(reason)" }
}

extension SynheartAuthError {
    /// The SDK's error for a failure of the key store.
    static func keyStore(_ error: KeyStoreError, _ protection: KeyProtection) -> SynheartAuthError {
        if error.isKeyLost { return SynheartAuthError(.keyInvalidated, "the key is gone", cause: error) }
        if error.code == .misconfigured { return SynheartAuthError(.notConfigured, error.reason, cause: error) }
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
