import SynheartAuth

// The samples of BackgroundAndLockedDevice.md, in its order. DocumentationTests compares the page with this file.

struct BackgroundAndLockedDevice {
    func registerWhenUnlocked(_ auth: SynheartAuth) async throws {
        while true {
            do {
                try await auth.registerDevice(appID: "com.example.app")
                return
            } catch let error as SynheartAuthError where error.isRetryable && error.code == .storageError {
                // In an app: UIApplication.protectedDataDidBecomeAvailableNotification.
                await protectedDataBecomesAvailable()
            }
        }
    }

    func refresh(_ auth: SynheartAuth) async -> Bool {
        do {
            try await auth.maintain(appID: "com.example.app")
            return true
        } catch {
            // An unfinished rotation continues at the next launch.
            return false
        }
    }

    private func protectedDataBecomesAvailable() async {}
}
