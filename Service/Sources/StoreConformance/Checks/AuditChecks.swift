internal import AuthContract
internal import AuthService
internal import StrictJSON

extension StoreConformance {
    static var auditChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Events are read as they were appended, newest first, in pages") { stores in
                let samples = try Samples(stores)
                let events = (0..<7).map { _ in samples.event(.securityEvent, device: samples.deviceID()) }
                for event in events { try await stores.audit.append(event) }
                var (before, read) = (Int64?.none, [RecordedAuditEvent]())
                while read.count < 100 {
                    let page = try await stores.audit.events(app: samples.app, device: nil, before: before, limit: 3)
                    read += page
                    guard let last = page.last else { break }
                    before = last.sequence
                }
                try expect(read.map(\.event), is: events.reversed(), "the events")
                let one = try await stores.audit.events(
                    app: nil, device: events[2].deviceID, before: nil, limit: 10)
                try expect(one.map(\.event), is: [events[2]], "the events of one device")
            },
            ConformanceCheck("Events are found by their codes between two others, newest first") { stores in
                let samples = try Samples(stores)
                let codes: [AuditEvent.Code] = [.appAdded, .securityEvent, .appChanged, .appRemoved, .appChanged]
                let start = try await stores.audit.link(at: nil)?.sequence ?? 0
                for code in codes { try await stores.audit.append(samples.event(code)) }
                func found(
                    _ codes: Set<AuditEvent.Code>?, after: Int64 = 0, before: Int64? = nil, limit: Int = 100
                ) async throws -> [Int64] {
                    try await stores.audit.events(
                        app: samples.app, device: nil, codes: codes, after: start + after,
                        before: before.map { start + $0 }, limit: limit
                    ).map { $0.sequence - start }
                }
                try expect(try await found(nil), is: [5, 4, 3, 2, 1], "the events with any code")
                try expect(try await found([.appChanged]), is: [5, 3], "the events with one code")
                try expect(try await found([.appChanged, .appAdded]), is: [5, 3, 1], "the events with two codes")
                try expect(
                    try await found([.appChanged, .appAdded], after: 1, before: 5), is: [3], "the events between two")
                try expect(try await found([.appChanged], limit: 1), is: [5], "the newest one")
                try expect(try await found([.deviceRevoked]), is: [], "the events with a code that none has")
                try expect(try await found([]), is: [], "the events with no code")
            },
            ConformanceCheck("Events after a sequence number are read unchanged, oldest first, in pages") { stores in
                let samples = try Samples(stores)
                let events = (0..<5).map { _ in samples.event(.securityEvent, device: samples.deviceID()) }
                let start = try await stores.audit.link(at: nil)?.sequence ?? 0
                for event in events { try await stores.audit.append(event) }
                var (after, read) = (start, [RecordedAuditEvent]())
                while read.count < 100 {
                    let page = try await stores.audit.events(app: samples.app, device: nil, after: after, limit: 2)
                    read += page
                    guard let last = page.last else { break }
                    after = last.sequence
                }
                try expect(read.map(\.event), is: events, "the events")
                try expect(read.map(\.sequence), is: Array((start + 1)...(start + 5)), "the numbers")
                let one = try await stores.audit.events(
                    app: nil, device: events[2].deviceID, after: start, limit: 10)
                try expect(one.map(\.event), is: [events[2]], "the events of one device")
            },
            ConformanceCheck("An event whose detail could not be read back is refused, and the log goes on") { stores in
                let samples = try Samples(stores)
                let text = String(repeating: "\u{7F}", count: 200_000)
                let event = AuditEvent(
                    .securityEvent, at: samples.now, actor: "conformance", appID: samples.app,
                    detail: JSONObject([("text", .string(text))]))
                do {
                    try await stores.audit.append(event)
                    throw Unmet(found: "an event of 1.2 MB was appended")
                } catch is StoreError {}
                try await stores.audit.append(samples.event(.securityEvent))
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.count, is: 1, "the number of events")
            },
            ConformanceCheck("64 events appended at once have numbers without a gap and one chain of hashes") {
                stores in
                let samples = try Samples(stores)
                try await stores.audit.append(samples.event(.securityEvent))
                _ = try await concurrently(64) { _ in try await stores.audit.append(samples.event(.securityEvent)) }
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                let last = try unwrap(events.first, "last event").sequence
                try expect(events.map(\.sequence), is: Array((last - 64)...last).reversed(), "the numbers")
                for (next, previous) in zip(events, events.dropFirst()) {
                    let hash = AuditChain.hash(.init(next.event, sequence: next.sequence), after: previous.hash)
                    try expect(next.hash, is: hash, "the hash of \(next.sequence)")
                }
                try expect(try await stores.audit.firstBrokenLink(), is: nil, "the first broken link")
                let links = events.map { AuditLink(sequence: $0.sequence, hash: $0.hash) }
                try expect(try await stores.audit.link(at: nil), is: links.first, "the last link")
                try expect(try await stores.audit.link(at: last - 64), is: links.last, "the link of an event")
                try expect(try await stores.audit.link(at: last + 1), is: nil, "the link after the last")
            },
            ConformanceCheck("Each change of an app or a device has one event, and only changes have events") {
                stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                _ = try await stores.apps.insert(
                    StoredApp(appID: samples.app, sealedJSON: "{}"), recording: samples.event(.appAdded))
                try await stores.add(device, samples)
                _ = try await stores.insert(device, samples)
                _ = try await stores.devices.raise(
                    .counter(1, ofAppAttestKey: device.appAttest?.keyID ?? []), of: device.deviceID, app: device.appID)
                try await stores.devices.writeLastSeen([device.deviceID: stores.now])
                for _ in 0..<2 { _ = try await stores.devices.save(samples.rotation(of: device)) }
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(
                    events.map(\.event.code), is: [.keyRotated, .deviceRegistered, .appAdded], "the codes, newest first"
                )
                try expect(try await stores.audit.firstBrokenLink(), is: nil, "the first broken link")
            },
        ]
    }
}
