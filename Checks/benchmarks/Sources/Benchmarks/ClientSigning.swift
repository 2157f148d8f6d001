import AuthContract
import Crypto
import Foundation
import StrictJSON
import SynheartAuth

/// The client: `signRequest` with a software key and a body of 1 KiB, compared with the bare signature.
enum ClientSigning {
    static func run() async throws -> [Measurement] {
        let folder = try TemporaryFolder()
        var configuration = try SynheartAuth.Configuration(baseUrl: "http://127.0.0.1:1")
        configuration.storage = FileStorage(directory: folder.url.path + "/identity")
        configuration.keyStore = SoftwareKeyStore(directory: folder.url.path + "/keys")
        configuration.attestation = NoVendor()
        configuration.transport = AgreeableService()
        let sdk = SynheartAuth(configuration)
        let app = "com.example.app"
        _ = try await sdk.registerDevice(appID: app)

        let body = [UInt8](repeating: 0x20, count: 1024)
        let key = P256.Signing.PrivateKey()
        let message = SchemeOneMessage.bytes(
            method: "POST", path: "/v1/readings", timestamp: UnixTime(1_712_345_678), body: body)
        let bare = try await measure("P-256 sign (swift-crypto), 1 KiB") { _ = try key.signature(for: message) }
        let sign: () async throws -> Void = {
            _ = try await sdk.signRequest(appID: app, method: "POST", path: "/v1/readings", bodyBytes: body)
        }
        let signed = try await measure("signRequest, 1 KiB", sign)
        let ratio = try await ratio(sign) { _ = try key.signature(for: message) }
        print(String(format: "  signRequest takes %.3f of the bare signature", ratio))

        for _ in 0..<10_000 { try await sign() }
        let before = residentKilobytes()
        for _ in 0..<1_000_000 { try await sign() }
        print("  resident memory over 10^6 signatures: \(before) KiB, then \(residentKilobytes()) KiB")

        let cold = try await measure("cold start: configured, record and key read, first signature", rounds: 3) {
            _ = try await SynheartAuth(configuration).signRequest(
                appID: app, method: "POST", path: "/v1/readings", bodyBytes: body)
        }
        return [bare, signed, cold]
    }
}

/// Attests nothing. This benchmark's service accepts every proof.
private struct NoVendor: AttestationProvider {
    var platform: Platform { .ios }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        AttestationEvidence(proof: "")
    }
}

private struct AgreeableService: HTTPTransport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let answer: JSONObject =
            if request.url.hasSuffix(Route.challenge.rawValue) {
                ChallengeResponse(
                    challenge: [UInt8](repeating: 1, count: 32), expiresAt: UnixTime(4_000_000_000), ttlSeconds: 90
                )
                .json
            } else {
                RegisterResponse(deviceID: DeviceID(from: SystemRandom()), status: .registered).json
            }
        return TransportResponse(
            status: 200, headers: HeaderFields([("Content-Type", "application/json")]),
            body: JSONValue.object(answer).bytes)
    }
}
