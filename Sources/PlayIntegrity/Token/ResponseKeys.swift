internal import Bytes
internal import Crypto
internal import CryptoExtras
public import StrictJSON

/// One pair of response encryption keys of an app, from Play Console: a key that decrypts its classic tokens, and
/// Google's key that verifies their signatures ([Play
/// Console](https://developer.android.com/google/play/integrity/classic#configure-api)).
public struct ResponseKeys: Sendable {
    let decryptionKey: SymmetricKey
    let verificationKey: P256.Signing.PublicKey

    /// The error of keys that cannot be read. The text names the fault, and contains nothing of the keys.
    public struct KeyError: RawRepresentable, Error, Sendable, Hashable {
        /// The fault, for people.
        public let rawValue: String

        /// An error with this text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The decryption key is not 32 bytes in base64.
        public static let decryptionKey = KeyError(rawValue: "DECRYPTION_KEY is not 32 octets in base64")
        /// The verification key is not a P-256 key as DER in base64.
        public static let verificationKey = KeyError(
            rawValue: "VERIFICATION_KEY is not a P-256 public key (SubjectPublicKeyInfo) in base64")
        /// The file does not have one line for each key.
        public static let file = KeyError(rawValue: "not a file of response keys")
        /// The private key is not an RSA key in PEM.
        public static let privateKey = KeyError(rawValue: "not an RSA private key in PEM")
        /// The file is not encrypted for this RSA key.
        public static let encryption = KeyError(rawValue: "the file is not encrypted for this key")
    }

    /// The keys from the two values that Play Console shows.
    ///
    /// - Parameters:
    ///   - decryptionKey: 32 bytes, base64 in either alphabet.
    ///   - verificationKey: a P-256 SubjectPublicKeyInfo in DER, base64 in either alphabet.
    public init(decryptionKey: String, verificationKey: String) throws(KeyError) {
        guard let secret = Base64.decodeLenient(decryptionKey), secret.count == 32 else { throw KeyError.decryptionKey }
        guard let der = Base64.decodeLenient(verificationKey),
            let key = try? P256.Signing.PublicKey(derRepresentation: der)
        else { throw KeyError.verificationKey }
        self.decryptionKey = SymmetricKey(data: secret)
        self.verificationKey = key
    }

    /// The keys from the decrypted text file of Play Console: a line `DECRYPTION_KEY=…` and a line
    /// `VERIFICATION_KEY=…`.
    public init(consoleText text: String) throws(KeyError) {
        func value(_ name: String) -> String? {
            let lines = text.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("\(name)=") }
            return lines.count == 1 ? lines.first.map { String($0.dropFirst(name.count + 1)) } : nil
        }
        guard let decryption = value("DECRYPTION_KEY"), let verification = value("VERIFICATION_KEY") else {
            throw KeyError.file
        }
        try self.init(decryptionKey: decryption, verificationKey: verification)
    }

    /// Decrypts the `.enc` file that Play Console encrypted (RSA-OAEP with SHA-1) for an uploaded public key.
    ///
    /// - Parameters:
    ///   - file: the bytes of the file.
    ///   - privateKeyPEM: the RSA private key, PKCS#8 or PKCS#1.
    public init(encryptedFile file: some Collection<UInt8>, privateKeyPEM: String) throws(KeyError) {
        guard let key = try? _RSA.Encryption.PrivateKey(pemRepresentation: privateKeyPEM) else {
            throw KeyError.privateKey
        }
        guard let text = try? key.decrypt(Array(file), padding: .PKCS1_OAEP) else { throw KeyError.encryption }
        try self.init(consoleText: String(decoding: text, as: UTF8.self))
    }

    /// The keys of an app record: an object with `decryption_key` and `verification_key`, or with Play Console's names,
    /// `DECRYPTION_KEY` and `VERIFICATION_KEY`.
    public init(_ fields: JSONFields) throws(JSONError) {
        let names =
            fields.names.contains("DECRYPTION_KEY")
            ? ("DECRYPTION_KEY", "VERIFICATION_KEY") : ("decryption_key", "verification_key")
        let decryption = try fields.string(names.0)
        let verification = try fields.string(names.1)
        do {
            try self.init(decryptionKey: decryption, verificationKey: verification)
        } catch {
            throw JSONError(
                .wrongType, path: fields.pathOf(error == .decryptionKey ? names.0 : names.1))
        }
    }
}

extension ResponseKeys {
    /// Both keys in plain text, as the members of an app record. Only for code that stores them.
    public var exposed: JSONObject {
        JSONObject([
            ("decryption_key", .string(decryptionKey.withUnsafeBytes { Base64.standard.encode($0) })),
            ("verification_key", .string(Base64.standard.encode(verificationKey.derRepresentation))),
        ])
    }
}

extension ResponseKeys: CustomStringConvertible, CustomReflectable {
    /// Shows nothing of the keys.
    public var description: String { "ResponseKeys" }
    /// Shows nothing of the keys.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
