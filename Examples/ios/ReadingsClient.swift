import Foundation
import SynheartAuth

/// An iOS app's client: registers at launch, signs its uploads.
struct ReadingsClient {
    static let appID = "com.example.readings"
    let sdk: SynheartAuth

    init() throws {
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
        configuration.origins = [try RequestOrigin("https://api.example.com")]
        sdk = SynheartAuth(configuration)
    }

    /// Called at every launch. A registered device sends nothing, except a rotation that is due, in the background.
    func start() async throws {
        do {
            try await sdk.registerDevice(appID: Self.appID)
        } catch let error as SynheartAuthError where error.recovery == .reset {
            // This identity can no longer be used, for example because the service revoked the device. The app and its user decide
            // whether the device may register again.
            throw error
        }
    }

    func latest() async throws -> String {
        let request = TransportRequest(
            method: "GET", url: "https://api.example.com/v1/readings/latest", headers: HeaderFields(), body: [])
        return String(decoding: try await sdk.send(request, appID: Self.appID).body, as: UTF8.self)
    }

    func upload(_ reading: Data) async throws -> Int {
        let request = TransportRequest(
            method: "POST", url: "https://api.example.com/v1/readings",
            headers: HeaderFields([("Content-Type", "application/json")]), body: Array(reading))
        return try await sdk.send(request, appID: Self.appID).status
    }
}
