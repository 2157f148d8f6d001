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
            // Tell your backend: its data under the old id no longer belong to this device.
            await backend.deviceChanged(from: before, to: registration.deviceId)
        }
    }
}
