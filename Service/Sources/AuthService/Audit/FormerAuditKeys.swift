internal import AuthContract
internal import Crypto
internal import StrictJSON

/// The public keys that signed earlier heads of the audit log, as rotations of the service key recorded them.
struct FormerAuditKeys {
    private var trusted: [Curve25519.Signing.PublicKey]
    /// The former keys that a chain of signed rotations connects to the present ones.
    private(set) var keys: [Curve25519.Signing.PublicKey] = []

    private static let maximum = 1000

    /// - Parameter present: the public keys of the present service key.
    init(before present: [Curve25519.Signing.PublicKey]) { trusted = present }

    /// Adds the former keys that a rotation recorded, if a trusted key signed them. Add the newest rotation first: the
    /// keys of each older rotation are signed by keys that the next newer rotation makes trusted.
    ///
    /// - Parameter detail: the detail of the event `service_key.rotated`.
    mutating func add(_ detail: JSONObject) {
        for entry in detail["audit_keys"]?.array ?? [] {
            guard keys.count < Self.maximum,
                let bytes = entry.object?["key"]?.string.flatMap({ Base64.url.decode($0) }),
                let signature = entry.object?["signature"]?.string.flatMap({ Base64.url.decode($0) }),
                let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes),
                trusted.contains(where: { $0.isValidSignature(signature, for: AuditTrail.successionText(bytes)) })
            else { continue }
            trusted.append(key)
            keys.append(key)
        }
    }
}

extension AuditHead {
    /// Whether one of these keys signed the head.
    func isSigned(by keys: [Curve25519.Signing.PublicKey]) -> Bool {
        let text = Array(Self.signedText(kind, sequence: sequence, at: at, hash: hash).utf8)
        return keys.contains { $0.isValidSignature(signature, for: text) }
    }
}
