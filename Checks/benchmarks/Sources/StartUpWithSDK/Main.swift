import Foundation
import SynheartAuth

/// The app of `StartUpWithoutSDK` with the SDK: it configures the SDK, signs one request with the identity in a folder, and ends.
/// The first run registers the device.
@main
struct StartUpWithSDK {
    static func main() async throws {
        let folder = CommandLine.arguments[1]
        var configuration = try SynheartAuth.Configuration(baseUrl: "http://127.0.0.1:1")
        configuration.storage = FileStorage(directory: folder + "/identity")
        configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
        configuration.attestation = NoVendor()
        configuration.transport = AgreeableService()
        let (sdk, app) = (SynheartAuth(configuration), "com.example.app")
        guard FileManager.default.fileExists(atPath: folder + "/identity") else {
            _ = try await sdk.registerDevice(appID: app)
            return
        }
        print(try await sdk.signRequest(appID: app, method: "GET", path: "/").fields.count)
    }
}

private struct NoVendor: AttestationProvider {
    var platform: AttestationPlatform { .ios }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        AttestationEvidence(proof: "")
    }
}

/// A service that accepts every request.
private struct AgreeableService: HTTPTransport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let body =
            request.url.hasSuffix("/challenge")
            ? #"{"challenge":"\#(Data(count: 32).base64EncodedString())","expires_at":"2096-10-02T07:06:40Z","ttl_seconds":90}"#
            : #"{"device_id":"123e4567-e89b-42d3-a456-426614174000","status":"registered"}"#
        return TransportResponse(
            status: 200, headers: HeaderFields([("Content-Type", "application/json")]), body: Array(body.utf8))
    }
}
