import Foundation
import PlayIntegrity
import StrictJSON

// The samples of PlayIntegrity's pages. DocumentationTests compares the pages with this file.

enum PlaySamples {
    static func register(
        token: String, nonce: String, keys: [ResponseKeys], signingCertificate digest: [UInt8]
    ) throws -> VerifiedIntegrity {
        let verifier = PlayIntegrityVerifier(
            policy: PlayIntegrityPolicy(certificateDigests: [digest]), packages: ["com.example.app"])
        switch try IntegrityToken(token).decode(with: keys) {
        case .decoded(let verdict): return try verifier.verify(verdict, binding: .nonce(nonce), at: Date())
        case .refused(let error): throw error
        case .couldNotCheck(let reason): throw reason
        }
    }

    static func openKeys(octets: Data, pem: String) throws -> ResponseKeys {
        let keys = try ResponseKeys(encryptedFile: octets, privateKeyPEM: pem)
        return keys
    }

    static func readAccount(fileOctets: Data) throws -> ServiceAccount {
        let account = try ServiceAccount(JSONFields(JSONValue(parsing: fileOctets)))
        return account
    }

    static func decodeAtGoogle(
        token: String, account: ServiceAccount,
        post: (_ url: String, _ headers: [String: String], _ body: [UInt8]) async throws -> (status: Int, body: Data)
    ) async throws -> DecodeOutcome {
        let granted = try await post(
            account.tokenURI, ["Content-Type": "application/x-www-form-urlencoded"],
            account.tokenRequestBody(at: Date()))
        // Keep it for its lifetime, minus some minutes.
        let access = try AccessToken(status: granted.status, body: granted.body)
        guard let request = DecodeRequest(package: "com.example.app", token: token) else {
            return .couldNotCheck(.init(.unexpectedAnswer, "not a package name"))
        }
        let answer = try await post(
            DecodeRequest.endpoint + request.path,
            ["Content-Type": "application/json", "Authorization": "Bearer \(access.value)"], request.body)
        return .googleAnswer(status: answer.status, body: answer.body)
    }

    static func theDefault(digest: [UInt8]) {
        let policy = PlayIntegrityPolicy(certificateDigests: [digest])
        _ = policy
    }

    static func money(digest: [UInt8]) {
        var policy = PlayIntegrityPolicy(certificateDigests: [digest])
        policy.deviceLabels = ["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"]
        policy.requiresLicense = true
        _ = policy
    }

    static func watching(digest: [UInt8]) {
        var policy = PlayIntegrityPolicy(certificateDigests: [digest])
        policy.refusedPlayProtect = ["HIGH_RISK"]
        policy.maximumActivityLevel = 3
        _ = policy
    }

    static func otherBuilds(uploadKeyDigest: [UInt8]) {
        var policy = PlayIntegrityPolicy(certificateDigests: [uploadKeyDigest])
        policy.recognitionVerdicts = ["PLAY_RECOGNIZED", "UNRECOGNIZED_VERSION"]
        _ = policy
    }
}
