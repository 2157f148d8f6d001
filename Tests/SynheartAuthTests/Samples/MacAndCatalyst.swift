import SynheartAuth

// The samples of MacAndCatalyst.md, in its order. DocumentationTests compares the page with this file.

enum MacAndCatalyst {
    enum Mode { case device, signInOnly }

    static func start(_ auth: SynheartAuth) async throws -> Mode? {
        var mode: Mode?
        do {
            try await auth.registerDevice(appID: "com.example.app")
            mode = .device
        } catch let error as SynheartAuthError where error.code == .attestationUnavailable {
            // This Mac cannot attest itself. Another call will not help.
            mode = .signInOnly
        }
        return mode
    }
}
