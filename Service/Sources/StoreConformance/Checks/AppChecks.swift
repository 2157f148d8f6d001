internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var appChecks: [ConformanceCheck] {
        [
            ConformanceCheck("An app is inserted once and read unchanged") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: #"{"name":"é 🔑","n":1.0}"#)
                let event = samples.event(.appAdded)
                try expect(try await stores.apps.app(app.appID), is: nil, "the app before")
                try expect(try await stores.apps.insert(app, recording: event), is: true, "the first insertion")
                let other = StoredApp(appID: samples.app, sealedJSON: "{}")
                try expect(try await stores.apps.insert(other, recording: event), is: false, "the second insertion")
                try expect(try await stores.apps.app(app.appID), is: app, "the app after")
            },
            ConformanceCheck("Apps are listed by id") { stores in
                let ids = try (0..<5).map { _ in try Samples.appID() }
                let samples = try Samples(stores)
                for id in ids {
                    let app = StoredApp(appID: id, sealedJSON: "{}")
                    _ = try await stores.apps.insert(app, recording: samples.event(.appAdded, app: id))
                }
                let listed = try await stores.apps.apps().map(\.appID).filter { ids.contains($0) }
                try expect(listed, is: ids.sorted { $0.text < $1.text }, "the list")
            },
            ConformanceCheck("Of 64 changes of one app record one succeeds") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                let won = try await concurrently(64) { number in
                    let new = StoredApp(appID: samples.app, sealedJSON: #"{"number":\#(number)}"#)
                    let outcome = try await stores.apps.replace(
                        app, with: new, needsNoDevices: number % 2 == 0, recording: samples.event(.appChanged))
                    return outcome == .replaced
                }
                try expect(won.count { $0 }, is: 1, "the number of winners")
                let winner = try unwrap(won.firstIndex(of: true), "winner")
                let stored = try await stores.apps.app(samples.app)?.sealedJSON
                try expect(stored, is: #"{"number":\#(winner)}"#, "the record")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.map(\.event.code), is: [.appChanged, .appAdded], "the log")
            },
            ConformanceCheck("An unknown app is neither replaced nor removed") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                let event = samples.event(.appChanged)
                try expect(
                    try await stores.apps.replace(app, with: app, needsNoDevices: false, recording: event),
                    is: .conflict,
                    "replacing")
                try expect(try await stores.apps.remove(samples.app, recording: event), is: false, "removing")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events, is: [], "the log")
            },
            ConformanceCheck("An app is not replaced by a record of another app") { stores in
                let samples = try Samples(stores)
                let apps = try [samples.app, Samples.appID()].map { StoredApp(appID: $0, sealedJSON: "{}") }
                let event = samples.event(.appChanged)
                for app in apps { _ = try await stores.apps.insert(app, recording: event) }
                let other = StoredApp(appID: apps[1].appID, sealedJSON: #"{"number":1}"#)
                let replaced = try await stores.apps.replace(
                    apps[0], with: other, needsNoDevices: false, recording: event)
                try expect(replaced, is: .conflict, "replacing")
                for app in apps { try expect(try await stores.apps.app(app.appID), is: app, "the app after") }
            },
            ConformanceCheck("An app with devices is not removed, also when they have deregistered") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                try await stores.add(samples.device(status: .deregistered), samples)
                let removed = try await stores.apps.remove(samples.app, recording: samples.event(.appRemoved))
                try expect(removed, is: false, "removing")
                try expect(try await stores.apps.app(samples.app), is: app, "the app after")
            },
            ConformanceCheck("An app without devices is removed and can be added again") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                let event = samples.event(.appRemoved)
                _ = try await stores.apps.insert(app, recording: event)
                try expect(try await stores.apps.remove(samples.app, recording: event), is: true, "removing")
                try expect(try await stores.apps.app(samples.app), is: nil, "the app after")
                try expect(try await stores.apps.insert(app, recording: event), is: true, "inserting again")
            },
        ]
    }
}
