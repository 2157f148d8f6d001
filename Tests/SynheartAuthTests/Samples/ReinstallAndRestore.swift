import SynheartAuth

// The samples of ReinstallAndRestore.md, in its order. DocumentationTests compares the page with this file.

struct ReinstallAndRestore {
    struct Backend {
        func deviceChanged(from old: String, to new: String) async {}
    }

    let backend = Backend()

    func start(_ auth: SynheartAuth) async throws {
        let before = try await auth.getDeviceId(appID: "com.example.app")
        let registration = try await auth.registerDevice(appID: "com.example.app")
        if let before, before != registration.deviceId {
            // Tell your backend: what it keeps under the old id belongs to this device no more.
            await backend.deviceChanged(from: before, to: registration.deviceId)
        }
    }
}
