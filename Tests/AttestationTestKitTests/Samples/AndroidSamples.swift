import AndroidKeyAttestation
import Crypto
import Foundation

// The samples of AndroidKeyAttestation's pages. DocumentationTests compares the pages with this file.

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
        holding held: RevocationStatusList?, entityTag: String?,
        send: (StatusListRequest) async throws -> (status: Int, headers: [(name: String, value: String)], body: Data)
    ) async throws -> (list: RevocationStatusList?, entityTag: String?, fetchAgainAfterSeconds: Int64) {
        // GET request.url with request.headers; read at most RevocationStatusList.maximumLength bytes.
        let (status, headers, body) = try await send(StatusListRequest(holding: entityTag))
        let answer = try StatusListAnswer(status: status, headers: headers, body: body)
        switch answer.content {
        case .list(let list) where list.count > 0 || held == nil: return (list, answer.entityTag, answer.freshFor)
        case .list, .unchanged: return (held, entityTag, answer.freshFor)
        }
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
