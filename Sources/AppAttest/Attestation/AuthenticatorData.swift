package import CBOR

/// Authenticator data as App Attest uses it (W3C Web Authentication, section 6.1, with differences).
///
/// The parser ignores the flags byte. In Apple's own objects it announces credential data that is absent, and does
/// not always announce extensions that are present. So the caller chooses the initializer: one is for attestations,
/// the other for assertions.
package struct AuthenticatorData: Sendable {
    /// All bytes. The nonce covers them.
    package let bytes: [UInt8]
    /// SHA-256 of the App ID.
    package let relyingPartyIDHash: [UInt8]
    /// The flags byte. No check uses it.
    package let flags: UInt8
    /// The number of signatures that the key has made.
    package let counter: UInt32
    /// The credential data; nil in an assertion.
    package let credential: Credential?
    /// The extension map, since iOS 27 and macOS 27; nil if there is none.
    package let extensions: CBORMap?

    /// The credential data of an attestation.
    package struct Credential: Sendable {
        /// The AAGUID: 16 bytes that name the environment.
        package let aaguid: [UInt8]
        /// The key id.
        package let identifier: [UInt8]
        /// The key in COSE form (RFC 9052, section 7).
        package let key: CBORMap
    }

    /// Parses the authenticator data of an assertion: hash (32 bytes), flags (1), counter (4), and then nothing or one map.
    package init(assertion bytes: [UInt8]) throws(AppAttestError) {
        guard bytes.count >= 37 else { throw Self.malformed("\(bytes.count) bytes, fewer than 37") }
        try self.init(bytes, credential: nil, extensionsAt: 37)
    }

    /// Parses the authenticator data of an attestation: hash (32 bytes), flags (1), counter (4), AAGUID (16), id length
    /// (2), id, COSE key, and then nothing or one map.
    package init(attestation bytes: [UInt8]) throws(AppAttestError) {
        guard bytes.count >= 55 else { throw Self.malformed("\(bytes.count) bytes, fewer than 55") }
        let keyStart = 55 + Int(bytes[53]) << 8 + Int(bytes[54])
        guard keyStart < bytes.count else { throw Self.malformed("the credential id is longer than the data") }
        let (key, length) = try Self.item(bytes[keyStart...], "the credential's key")
        guard let key = key.map else { throw Self.malformed("the credential's key is not a map") }
        let credential = Credential(aaguid: Array(bytes[37..<53]), identifier: Array(bytes[55..<keyStart]), key: key)
        try self.init(bytes, credential: credential, extensionsAt: keyStart + length)
    }

    private init(_ bytes: [UInt8], credential: Credential?, extensionsAt start: Int) throws(AppAttestError) {
        self.bytes = bytes
        self.relyingPartyIDHash = Array(bytes[0..<32])
        self.flags = bytes[32]
        self.counter = bytes[33..<37].reduce(0) { $0 << 8 | UInt32($1) }
        self.credential = credential
        guard start < bytes.count else {
            self.extensions = nil
            return
        }
        let (extensions, length) = try Self.item(bytes[start...], "the extensions")
        guard let map = extensions.map else { throw Self.malformed("the extensions are not a map") }
        guard start + length == bytes.count else { throw Self.malformed("something follows the extensions") }
        self.extensions = map
    }

    private static func item(
        _ bytes: ArraySlice<UInt8>, _ name: String
    ) throws(AppAttestError) -> (value: CBORValue, length: Int) {
        do throws(CBORError) {
            let (value, end) = try CBORValue.parsePrefix(of: bytes)
            return (value, end)
        } catch {
            throw malformed("\(name): \(error)")
        }
    }

    private static func malformed(_ reason: String) -> AppAttestError {
        AppAttestError(.malformedAuthenticatorData, .format, reason)
    }
}
