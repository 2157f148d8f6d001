import SynheartAuth

// The samples of WhatHappenedWhatToDo.md, in its order. DocumentationTests compares the page with this file.

struct WhatHappenedWhatToDo {
    func register() async {
        do {
            try await SynheartAuth.shared.registerDevice(appID: "com.example.app")
        } catch let error as SynheartAuthError {
            switch error.recovery {
            case .none: report(error)
            case .retry: scheduleRetry(after: error.retryAfter)
            case .configure: configureFirst()
            case .register: registerAgain()
            case .rotate: rotateTheKey()
            case .reset: askWhetherToStartOver(error)
            case .correctClock: askToSetTheClock()
            }
        } catch {}  // The caller was cancelled.
    }

    private func report(_ error: SynheartAuthError) {}
    private func scheduleRetry(after delay: Duration?) {}
    private func configureFirst() {}
    private func registerAgain() {}
    private func rotateTheKey() {}
    private func askWhetherToStartOver(_ error: SynheartAuthError) {}
    private func askToSetTheClock() {}
}
