import AndroidKeyAttestation
import Crypto
import Foundation

// The samples of AndroidKeyAttestation's pages. DocumentationTests holds the pages against this file.

enum AndroidSamples {
    static func register(
        pem: String, challenge: [UInt8], publicKey: P256.Signing.PublicKey, signingCertificate digest: [UInt8],
        statusList: RevocationStatusList?
    ) throws(KeyAttestationError) -> VerifiedKeyAttestation {
        let policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        let verifier = KeyAttestationVerifier(policy: policy, statusList: statusList)
        let chain = try KeyAttestationChain(pem: pem)
        return try verifier.verify(chain, challenge: challenge, publicKey: publicKey, at: Date())
    }

    static func fetchStatusList(
        send: (_ url: String) async throws -> (status: Int, body: Data)
    ) async throws -> RevocationStatusList? {
        let (status, body) = try await send(RevocationStatusList.googleURL)
        guard status == 200 else { return nil }
        return try RevocationStatusList(parsing: body)
    }

    static func theDefault(digest: [UInt8]) {
        let policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        _ = policy
    }

    static func otherSystems(digest: [UInt8], grapheneOSKeyDigest: [UInt8]) {
        var policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        policy.bootKeys = [grapheneOSKeyDigest]
        _ = policy
    }

    static func money(digest: [UInt8]) {
        var policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        policy.maximumPatchAgeDays = 365
        _ = policy
    }

    static func fleet(digest: [UInt8]) {
        var policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        policy.minimumSecurityLevel = .strongBox
        policy.maximumPatchAgeDays = 120
        _ = policy
    }
}
