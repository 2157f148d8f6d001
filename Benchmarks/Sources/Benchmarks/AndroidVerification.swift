import AndroidKeyAttestation
import AttestationTestKit
import Crypto
import Foundation
import PlayIntegrity

/// Play Integrity tokens and key attestation chains, and what of their cost are signatures.
enum AndroidVerification {
    static func run() async throws -> [Measurement] { try await tokens() + chains() }

    private static func tokens() async throws -> [Measurement] {
        let google = try GoogleAuthority()
        let now = Date()
        let options = PlayTokenOptions()
        let text = try google.classicToken(nonce: "bm9uY2U", at: now, options: options)
        let keys = [try ResponseKeys(decryptionKey: google.decryptionKey, verificationKey: google.verificationKey())]
        let policy = PlayIntegrityPolicy(certificateDigests: nil)
        let verifier = PlayIntegrityVerifier(packages: [options.package], policy: policy)
        func verify() throws {
            guard case .decoded(let verdict) = try IntegrityToken(text).decode(with: keys) else { throw Unexpected() }
            _ = try verifier.verify(verdict, binding: .either("bm9uY2U"), at: now)
        }
        return [try await measure("Play Integrity token, decoded and judged: one P-256 verify", verify)]
    }

    private static func chains() async throws -> [Measurement] {
        let google = try GoogleAuthority(factoryRoot: .rsa2048)
        let (key, now) = (P256.Signing.PrivateKey().publicKey, Date())
        let challenge = [UInt8](repeating: 5, count: 32)
        let anchors = try AttestationAnchors(pem: google.rootsPEM(at: now))
        var results: [Measurement] = []
        for (name, options) in [("factory", KeyAttestationOptions()), ("remotely provisioned", .remote)] {
            let certificates = try google.attest(key, challenge: challenge, at: now, options: options)
            let verifier = KeyAttestationVerifier(policy: .audit, anchors: anchors, statusList: nil)
            func verify() throws {
                _ = try verifier.verify(
                    KeyAttestationChain(der: certificates), challenge: challenge, publicKey: key, at: now)
            }
            results.append(try await measure("key attestation, \(name) chain of \(certificates.count)", verify))
        }
        return results + (try await signatures())
    }

    /// What one signature of each kind costs, to be held against the chains.
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
