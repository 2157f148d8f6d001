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
                    let new = #"{"number":\#(number)}"#
                    let change = samples.change(app, to: new, needsNoDevices: number % 2 == 0)
                    return try await stores.apps.save(change) == .saved
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
                try expect(try await stores.apps.save(samples.change(app, to: "{}")), is: .conflict, "replacing")
                try expect(try await stores.apps.save(samples.removal(of: app)), is: .conflict, "removing")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events, is: [], "the log")
            },
            ConformanceCheck(
                "An app is changed or removed only if the stored record equals the one that the caller read, byte for byte"
            ) { stores in
                let samples = try Samples(stores)
                // The composed and the decomposed form of one character: Swift's `==` calls the texts equal, but their bytes differ.
                let apps = try [("\u{E9}", samples.app), ("e\u{301}", Samples.appID())].map { text, app in
                    StoredApp(appID: app, sealedJSON: #"{"name":"\#(text)"}"#)
                }
                let event = samples.event(.appAdded)
                for app in apps { _ = try await stores.apps.insert(app, recording: event) }
                for json in [apps[1].sealedJSON, "{}"] {
                    let outdated = StoredApp(appID: samples.app, sealedJSON: json)
                    for change in [samples.change(outdated, to: "{ }"), samples.removal(of: outdated)] {
                        try expect(try await stores.apps.save(change), is: .conflict, "changing from \(json)")
                    }
                }
                for app in apps {
                    let stored = try await stores.apps.app(app.appID)?.sealedJSON
                    try expect(stored.map { Array($0.utf8) }, is: Array(app.sealedJSON.utf8), "the app after")
                }
                try expect(try await stores.codes(samples), is: [.appAdded, .appAdded], "the log")
            },
            ConformanceCheck("An app with devices is not removed, even if all its devices are deregistered") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                try await stores.add(samples.device(status: .deregistered), samples)
                try expect(try await stores.apps.save(samples.removal(of: app)), is: .hasDevices, "removing")
                let outdated = StoredApp(appID: samples.app, sealedJSON: "{ }")
                for change in [
                    samples.removal(of: outdated), samples.change(outdated, to: "{}", needsNoDevices: true),
                ] {
                    try expect(try await stores.apps.save(change), is: .conflict, "changing from another record")
                }
                try expect(try await stores.apps.app(samples.app), is: app, "the app after")
            },
            ConformanceCheck("An app without devices is removed and can be added again") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                let event = samples.event(.appRemoved)
                _ = try await stores.apps.insert(app, recording: event)
                try expect(try await stores.apps.save(samples.removal(of: app)), is: .saved, "removing")
                try expect(try await stores.apps.app(samples.app), is: nil, "the app after")
                try expect(try await stores.apps.insert(app, recording: event), is: true, "inserting again")
            },
        ]
    }
}
