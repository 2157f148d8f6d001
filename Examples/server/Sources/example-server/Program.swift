import AndroidKeyAttestation
import AppAttest
import ExampleServer
import Foundation
import Hummingbird
import PlayIntegrity

/// Reads the apps from the environment, and serves on 127.0.0.1:8080. See README.md.
@main
struct Program {
    struct Misconfigured: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    static func main() async throws {
        let gate = Gate(apple: try apple(), android: try android())
        let app = Application(
            router: makeRouter(gate), configuration: .init(address: .hostname("127.0.0.1", port: 8080)))
        try await app.runService()
    }

    private static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func file(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: path)) }

    private static func apple() throws -> AppleVerifiers? {
        guard let text = variable("IOS_APP_ID") else { return nil }
        guard let appID = AppleAppID(text) else { throw Misconfigured("IOS_APP_ID is not TEAMID.bundle.id: \(text)") }
        return AppleVerifiers(appID: appID)
    }

    private static func android() throws -> AndroidVerifiers? {
        guard let package = variable("ANDROID_PACKAGE") else { return nil }
        guard let digest = variable("ANDROID_CERTIFICATE_SHA256").flatMap({ Data(base64Encoded: $0) }),
            digest.count == 32
        else { throw Misconfigured("ANDROID_CERTIFICATE_SHA256 must be 32 bytes in base64") }
        guard let keys = variable("PLAY_RESPONSE_KEYS") else {
            throw Misconfigured("PLAY_RESPONSE_KEYS must name the file with DECRYPTION_KEY and VERIFICATION_KEY")
        }
        let statusList = try variable("ANDROID_STATUS_LIST").map { try RevocationStatusList(parsing: file($0)) }
        if statusList == nil { print("ANDROID_STATUS_LIST is not set: revoked attestation keys are not found") }
        return AndroidVerifiers(
            package: package, certificateDigest: Array(digest),
            responseKeys: [try ResponseKeys(consoleText: String(decoding: try file(keys), as: UTF8.self))],
            statusList: statusList)
    }
}
