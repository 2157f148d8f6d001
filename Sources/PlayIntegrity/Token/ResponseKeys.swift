internal import Bytes
internal import Crypto
internal import CryptoExtras
public import StrictJSON

/// One pair of response encryption keys, as Play Console hands them out for an app: a key to decrypt its classic tokens
/// with and Google's key to verify them with
/// ([Play Console](https://developer.android.com/google/play/integrity/classic#configure-api)).
public struct ResponseKeys: Sendable {
    let decryptionKey: SymmetricKey
    let verificationKey: P256.Signing.PublicKey

    /// Why a text is no pair of keys. Says which key, and nothing of it.
    public struct KeyError: RawRepresentable, Error, Sendable, Hashable {
        /// What is wrong, for people.
        public let rawValue: String

        /// By its text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Not 32 bytes in base64.
        public static let decryptionKey = KeyError(rawValue: "DECRYPTION_KEY is not 32 octets in base64")
        /// Not a P-256 key in DER in base64.
        public static let verificationKey = KeyError(
            rawValue: "VERIFICATION_KEY is not a P-256 public key (SubjectPublicKeyInfo) in base64")
        /// The file does not have one line for each key.
        public static let file = KeyError(rawValue: "not a file of response keys")
        /// Not an RSA private key in PEM.
        public static let privateKey = KeyError(rawValue: "not an RSA private key in PEM")
        /// The file is not encrypted for this RSA key.
        public static let encryption = KeyError(rawValue: "the file is not encrypted for this key")
    }

    /// The keys from the two values that Console gives.
    ///
    /// - Parameters:
    ///   - decryptionKey: 32 octets, base64 in either alphabet.
    ///   - verificationKey: a P-256 SubjectPublicKeyInfo in DER, base64 in either alphabet.
    public init(decryptionKey: String, verificationKey: String) throws(KeyError) {
        guard let secret = Base64.decodeLenient(decryptionKey), secret.count == 32 else { throw KeyError.decryptionKey }
        guard let der = Base64.decodeLenient(verificationKey),
            let key = try? P256.Signing.PublicKey(derRepresentation: der)
        else { throw KeyError.verificationKey }
        self.decryptionKey = SymmetricKey(data: secret)
        self.verificationKey = key
    }

    /// The keys from the text file that Console's encrypted file holds: a line `DECRYPTION_KEY=…` and a line
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

    /// Opens the `.enc` file that Console encrypts (RSA-OAEP with SHA-1) for the public key that was uploaded to it.
    ///
    /// - Parameters:
    ///   - file: the file's octets.
    ///   - privateKeyPEM: the RSA private key, PKCS#8 or PKCS#1.
    public init(encryptedFile file: some Collection<UInt8>, privateKeyPEM: String) throws(KeyError) {
        guard let key = try? _RSA.Encryption.PrivateKey(pemRepresentation: privateKeyPEM) else {
            throw KeyError.privateKey
        }
        guard let text = try? key.decrypt(Array(file), padding: .PKCS1_OAEP) else { throw KeyError.encryption }
        try self.init(consoleText: String(decoding: text, as: UTF8.self))
    }

    /// The keys of an app record: an object with `decryption_key` and `verification_key`, or with Console's names.
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
    /// Both keys in the clear, as an app record takes them: for the one place that stores them.
    public var exposed: JSONObject {
        JSONObject([
            ("decryption_key", .string(decryptionKey.withUnsafeBytes { Base64.standard.encode($0) })),
            ("verification_key", .string(Base64.standard.encode(verificationKey.derRepresentation))),
        ])
    }
}

extension ResponseKeys: CustomStringConvertible, CustomReflectable {
    /// Nothing of the keys.
    public var description: String { "ResponseKeys" }
    /// Nothing of the keys.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
