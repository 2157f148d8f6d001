import AuthContract
import Crypto
import Foundation
import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The same app with a device identity, every operation of the SDK used.
@main
struct SizeWithSDK {
    static func main() async throws {
        let key = P256.Signing.PrivateKey()
        var request = URLRequest(url: URL(string: CommandLine.arguments[1])!)
        let signature = try key.signature(for: Data(request.url!.path.utf8))
        request.setValue(signature.derRepresentation.base64EncodedString(), forHTTPHeaderField: "X-Signature")

        let (sdk, app) = (SynheartAuth.shared, "com.example.app")
        try sdk.configure(baseUrl: CommandLine.arguments[1])
        try await sdk.registerDevice(appId: app)
        try await sdk.rotateKey(appId: app)
        try await sdk.maintain(appId: app)
        try await sdk.sign(&request, appId: app)
        let answer = try await sdk.send(
            TransportRequest(method: "GET", url: CommandLine.arguments[1], headers: HeaderFields(), body: []),
            appId: app)
        let token = try await sdk.deviceToken(appId: app)

        let (data, _) = try await URLSession.shared.data(for: request)
        print(data.count, answer.status, token)
        try await sdk.resetDeviceIdentity(appId: app, reason: .userRequested)
    }
}
