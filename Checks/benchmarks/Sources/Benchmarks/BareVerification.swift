import Crypto

/// P-256 verification alone.
enum BareVerification {
    static func run() async throws -> [Measurement] {
        let key = P256.Signing.PrivateKey()
        let message = [UInt8](repeating: 7, count: 256)
        let signature = try key.signature(for: message)
        let publicKey = key.publicKey
        let one = await measure("P-256 verify (swift-crypto)") {
            precondition(publicKey.isValidSignature(signature, for: message))
        }
        // Different keys and signatures each time, as in a service, so that caches and branch prediction do not help.
        let keys = (0..<64).map { _ in P256.Signing.PrivateKey() }
        let publicKeys = keys.map(\.publicKey)
        let signed = try (0..<8192).map { index in
            let message = Array("GET\n/v1/\(index)\n1712345678\n".utf8)
            return (message, try keys[index % 64].signature(for: message))
        }
        var index = 0
        let many = await measure("the same, 64 keys and 8,192 signatures in turn") {
            index = (index + 1) % 8192
            precondition(publicKeys[index % 64].isValidSignature(signed[index].1, for: signed[index].0))
        }
        return [one, many]
    }
}
