import SynheartAuth

// The samples of TestingYourApp.md, in its order. DocumentationTests holds the page against this file.

enum TestingYourApp {
    struct Uploader: Sendable {
        let auth: any DeviceAuthenticating

        func upload(_ reading: [UInt8]) async throws(SynheartAuthError) -> Bool {
            let request = TransportRequest(
                method: "POST", url: "https://api.example.com/v1/readings", headers: HeaderFields(), body: reading)
            do throws(SynheartAuthError) {
                return try await auth.send(request, appID: "com.example.app").status == 200
            } catch {
                guard error.recovery == .register else { throw error }
                try await auth.registerDevice(appID: "com.example.app")
                return try await auth.send(request, appID: "com.example.app").status == 200
            }
        }
    }
}
