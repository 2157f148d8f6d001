import SynheartAuth

// The samples of TestingYourApp.md, in its order. DocumentationTests compares the page with this file.

enum TestingYourApp {
    struct Uploader: Sendable {
        let auth: any DeviceAuthenticating

        func upload(_ reading: [UInt8]) async throws -> Bool {
            let request = TransportRequest(
                method: "POST", url: "https://api.example.com/v1/readings", headers: HeaderFields(), body: reading)
            do {
                return try await auth.send(request, appID: "com.example.app").status == 200
            } catch let error as SynheartAuthError where error.recovery == .register {
                try await auth.registerDevice(appID: "com.example.app")
                return try await auth.send(request, appID: "com.example.app").status == 200
            }
        }
    }
}
