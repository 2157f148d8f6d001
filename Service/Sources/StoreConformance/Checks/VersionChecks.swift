internal import AuthService

extension StoreConformance {
    static var versionChecks: [ConformanceCheck] {
        [
            ConformanceCheck("The service's version changes with its event, if it is still the one that was read") {
                stores in
                guard let store = stores.versions else { return }
                let samples = try Samples(stores)
                let first = try await store.serviceVersion()
                try expect(
                    try await store.replaceServiceVersion(first, with: "1.0.0", recording: nil), is: true,
                    "whether the first version was stored")
                try expect(try await store.serviceVersion(), is: "1.0.0", "the version")
                for (current, version, isDone) in [
                    (nil, "1.1.0", false), ("0.9.0", "1.1.0", false), ("1.0.0", "1.1.0", true),
                    ("1.0.0", "1.2.0", false),
                ] as [(String?, String, Bool)] {
                    let outcome = try await store.replaceServiceVersion(
                        current, with: version, recording: samples.event(.serviceVersionChanged))
                    try expect(outcome, is: isDone, "whether \(version) replaced \(current ?? "none")")
                }
                try expect(try await store.serviceVersion(), is: "1.1.0", "the version after the changes")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.map(\.event.code), is: [.serviceVersionChanged], "the codes")
            },
            ConformanceCheck("Of 16 changes of the service's version at once, one is done and has an event") { stores in
                guard let store = stores.versions else { return }
                let samples = try Samples(stores)
                let first = try await store.serviceVersion()
                let outcomes = try await concurrently(16) { _ in
                    try await store.replaceServiceVersion(
                        first, with: "2.0.0 \(samples.app)", recording: samples.event(.serviceVersionChanged))
                }
                try expect(outcomes.count { $0 }, is: 1, "the number of changes")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.count, is: 1, "the number of events")
            },
        ]
    }
}
