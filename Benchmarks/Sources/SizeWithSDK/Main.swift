import AuthContract
import Foundation
import PlainApp
import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The same app with a device identity, every operation of the SDK used.
@main
struct SizeWithSDK {
    static func main() async throws {
        let url = CommandLine.arguments[1]
        print(try await signAndSend(to: url))
        let (sdk, app) = (SynheartAuth.shared, "com.example.app")
        try sdk.configure(baseUrl: url)
        try await sdk.registerDevice(appId: app)
        try await sdk.rotateKey(appId: app)
        try await sdk.maintain(appId: app)
        guard let address = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: address)
        try await sdk.sign(&request, appId: app)
        let answer = try await sdk.send(
            TransportRequest(method: "GET", url: url, headers: HeaderFields(), body: []), appId: app)
        print(request, answer.status, try await sdk.deviceToken(appId: app))
        try await sdk.resetDeviceIdentity(appId: app, reason: .userRequested)
    }
}
