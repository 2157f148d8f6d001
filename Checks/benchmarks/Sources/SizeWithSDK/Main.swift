import Foundation
import PlainApp
import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The same app as `SizeWithoutSDK`, with the SDK added. It calls the main operations of the SDK.
@main
struct SizeWithSDK {
    static func main() async throws {
        let url = CommandLine.arguments[1]
        print(try await signAndSend(to: url))
        let (sdk, app) = (SynheartAuth.shared, "com.example.app")
        try sdk.configure(baseUrl: url)
        try await sdk.registerDevice(appID: app)
        try await sdk.rotateKey(appID: app)
        try await sdk.maintain(appID: app)
        guard let address = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: address)
        try await sdk.sign(&request, appID: app)
        let answer = try await sdk.send(
            TransportRequest(method: "GET", url: url, headers: HeaderFields(), body: []), appID: app)
        print(request, answer.status, try await sdk.deviceToken(appID: app))
        try await sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
    }
}
