internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var recordedRefusalChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Evidence is read unchanged, newest first, in pages, and only under its own app") {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                let kept = (0..<5).map { samples.refusal(device: $0 == 3 ? samples.deviceID() : nil) }
                for recording in kept { try await stores.recordings.keep(recording, within: .standard) }
                try await stores.recordings.keep(other.refusal(), within: .standard)
                var (pages, last) = ([[RecordingSummary]](), String?.none)
                while pages.count < 10 {
                    pages.append(try await stores.recordings.recordings(of: samples.app, before: last, limit: 2))
                    guard let id = pages.last?.last?.id else { break }
                    last = id
                }
                try expect(pages.map(\.count), is: [2, 2, 1, 0], "the sizes of the pages")
                try expect(pages.flatMap { $0 }, is: kept.map(\.summary).reversed(), "the list")
                let id = kept[3].summary.id
                try expect(try await stores.recordings.recording(id, of: samples.app), is: kept[3], "one of them")
                try expect(try await stores.recordings.recording(id, of: other.app), is: nil, "that of another app")
                let all = try await stores.recordings.recordings(of: nil, before: nil, limit: 1)
                try expect(all.map(\.appID), is: [other.app], "the newest of any app")
                let lost = try await stores.recordings.recordings(of: samples.app, before: "gone", limit: 10)
                try expect(lost, is: [], "the list before an unknown recording")
            },
            ConformanceCheck("Keeping a recording erases only the same app's oldest ones") {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                func kept() async throws -> [String] {
                    try await stores.recordings.recordings(of: samples.app, before: nil, limit: 100).map(\.id)
                }
                let foreign = other.refusal(bytes: 1000)
                try await stores.recordings.keep(foreign, within: .standard)
                let few = RecordingBounds(count: 3, bytes: 1000)
                let small = (0..<5).map { _ in samples.refusal(bytes: 100) }
                for recording in small { try await stores.recordings.keep(recording, within: few) }
                try expect(try await kept(), is: small.suffix(3).reversed().map(\.summary.id), "the newest three")
                let large = samples.refusal(bytes: 850)
                try await stores.recordings.keep(large, within: few)
                try expect(
                    try await kept(), is: [large.summary.id, small[4].summary.id], "the recordings within the bounds")
                try await stores.recordings.keep(samples.refusal(bytes: 1001), within: few)
                try expect(
                    try await kept(), is: [large.summary.id, small[4].summary.id],
                    "the recordings after one that is too large")
                try expect(
                    try await stores.recordings.recording(foreign.summary.id, of: other.app), is: foreign,
                    "another app's")
            },
            ConformanceCheck("A recording exactly at the bound is kept; a bound of 0 keeps the existing recordings") {
                stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let recording = samples.refusal(bytes: 1000)
                for bounds in [RecordingBounds(count: 1, bytes: 1000), .init(count: 0, bytes: 1000)] {
                    try await stores.recordings.keep(bounds.count == 1 ? recording : samples.refusal(), within: bounds)
                    let kept = try await stores.recordings.recordings(of: samples.app, before: nil, limit: 10)
                    try expect(kept, is: [recording.summary], "the recordings within \(bounds.count)")
                }
            },
            ConformanceCheck("Of 32 refusals kept at once as many stay as the bounds allow") { stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let bounds = RecordingBounds(count: 7, bytes: 1 << 20)
                _ = try await concurrently(32) { _ in
                    try await stores.recordings.keep(samples.refusal(), within: bounds)
                }
                let kept = try await stores.recordings.recordings(of: samples.app, before: nil, limit: 100)
                try expect(kept.count, is: 7, "the number that stayed")
            },
            ConformanceCheck("Evidence is erased by id, by app and when it has expired") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                let kept = (0..<4).map { samples.refusal(expiresAt: stores.now + Int64($0)) }
                for recording in kept { try await stores.recordings.keep(recording, within: .standard) }
                let foreign = other.refusal(expiresAt: stores.now + 9)
                try await stores.recordings.keep(foreign, within: .standard)
                func erase(_ id: String?, _ app: AppID) async throws -> Int {
                    try await stores.recordings.eraseRecordings(id, of: app, recording: samples.event(.evidenceErased))
                }
                func left() async throws -> [String] {
                    try await stores.recordings.recordings(of: samples.app, before: nil, limit: 10).map(\.id)
                }
                try expect(try await erase(kept[3].summary.id, other.app), is: 0, "the number that another app erased")
                try expect(try await erase(kept[3].summary.id, samples.app), is: 1, "the number erased by id")
                try expect(try await erase(kept[3].summary.id, samples.app), is: 0, "the number erased again")
                while try await stores.recordings.eraseRecordings(expiredAt: stores.now + 1, limit: 1) > 0 {}
                try expect(try await left(), is: [kept[2].summary.id], "what has not expired")
                try expect(try await erase(nil, samples.app), is: 1, "the number erased by app")
                try expect(try await left(), is: [], "the recordings left")
                try expect(
                    try await stores.recordings.recording(foreign.summary.id, of: other.app), is: foreign,
                    "another app's")
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 10)
                try expect(events.count, is: 2, "the number of events")
            },
        ]
    }
}

extension Samples {
    func refusal(
        device: DeviceID? = nil, bytes count: Int = 300, expiresAt: UnixTime? = nil
    ) -> RecordedRefusal {
        RecordedRefusal(
            summary: RecordingSummary(
                id: deviceID().text, appID: app, deviceID: device, recordedAt: now,
                expiresAt: expiresAt ?? now + 86_400,
                format: "app-attest-attestation", code: "NONCE_MISMATCH", step: "nonce"),
            sealed: bytes(count))
    }
}
