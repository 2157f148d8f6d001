import AndroidKeyAttestation
import AttestationTestKit
import Crypto
import Foundation
import PlayIntegrity

/// Measures the verification of Play Integrity tokens and key attestation chains, and of a single P-384 signature to compare.
enum AndroidVerification {
    static func run() async throws -> [Measurement] { try await tokens() + chains() }

    private static func tokens() async throws -> [Measurement] {
        let google = try GoogleAuthority()
        let now = Date()
        let options = PlayTokenOptions()
        let text = try google.classicToken(nonce: "bm9uY2U", at: now, options: options)
        let keys = [try ResponseKeys(decryptionKey: google.decryptionKey, verificationKey: google.verificationKey())]
        let policy = PlayIntegrityPolicy(certificateDigests: nil)
        let verifier = PlayIntegrityVerifier(policy: policy, packages: [options.package])
        func verify() throws {
            guard case .decoded(let verdict) = try IntegrityToken(text).decode(with: keys) else { throw Unexpected() }
            _ = try verifier.verify(verdict, binding: .either("bm9uY2U"), at: now)
        }
        return [try await measure("Play Integrity token, decoded and judged: one P-256 verify", verify)]
    }

    /// Verifies the chains of a thousand devices in turn, as in a service. Certificates that chains share are cached.
    /// Certificates of a single device are never cached. All leaves differ, and so do remotely provisioned attestation keys.
    private static func chains() async throws -> [Measurement] {
        let google = try GoogleAuthority(factoryRoot: .rsa2048)
        let now = Date()
        let challenge = [UInt8](repeating: 5, count: 32)
        let description = GoogleAuthority.keyDescription(challenge: challenge, at: now)
        let anchors = try KeyAttestationTrustAnchors(pem: google.rootsPEM(at: now))
        let shared: [(String, GoogleAuthority.Root, [KeyAttestationCertificate])] = [
            ("factory", .factory, [.factoryAttestation(title: "TEE"), .factoryIntermediate]),
            ("remotely provisioned", .remote, [.droidCA3, .droidCA2]),
        ]
        var results: [Measurement] = []
        for (name, root, authorities) in shared {
            var devices: [(key: P256.Signing.PublicKey, chain: [[UInt8]])] = []
            for _ in 0..<1024 {
                let key = P256.Signing.PrivateKey().publicKey
                var path = [KeyAttestationCertificate.leaf(.publicKey(key), keyDescription: description)]
                if root == .remote {
                    path.append(.remoteAttestation(organization: "TEE", key: .privateKey(P256.Signing.PrivateKey())))
                }
                let own = path.count
                let signed = try google.sign(path + authorities, under: root, at: now)
                // Use the same bytes of the authorities' certificates for every device.
                let chain = Array(signed.prefix(own) + (devices.first?.chain ?? signed).dropFirst(own))
                devices.append((key, chain))
            }
            let verifier = KeyAttestationVerifier(policy: .audit, trustAnchors: anchors, statusList: nil)
            func verify(_ index: Int, _ verifier: KeyAttestationVerifier) throws {
                let device = devices[index & 1023]
                _ = try verifier.verify(
                    KeyAttestationChain(der: device.chain), challenge: challenge, publicKey: device.key, at: now)
            }
            var index = 0
            let count = devices.first?.chain.count ?? 0
            results.append(
                try await measure("key attestation, \(name) chain of \(count)") {
                    index += 1
                    try verify(index, verifier)
                })
            results.append(
                try await measure("  the same, the first of its kind") {
                    index += 1
                    try verify(index, KeyAttestationVerifier(policy: .audit, trustAnchors: anchors, statusList: nil))
                })
        }
        return results + (try await signatures())
    }

    /// The cost of one signature of each kind, to compare with the chains.
    private static func signatures() async throws -> [Measurement] {
        let message = [UInt8](repeating: 7, count: 600)
        let p384 = P384.Signing.PrivateKey()
        let signature = try p384.signature(for: message)
        let publicKey = p384.publicKey
        return [
            await measure("  of which: each P-384 verify") {
                precondition(publicKey.isValidSignature(signature, for: message))
            }
        ]
    }
}

struct Unexpected: Error {}
