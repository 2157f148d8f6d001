import AndroidKeyAttestation
import AuthContract
import AuthService
import Foundation
import Logging
import Testing

import class Bytes.Locked

@testable import AttestationProviders

@Suite(.timeLimit(.minutes(15))) struct RevocationListTests {
    private static let two =
        #"{"entries":{"aa11":{"status":"REVOKED","reason":"KEY_COMPROMISE"},"bb22":{"status":"SUSPENDED"}}}"#
    private static let one = #"{"entries":{"cc33":{"status":"REVOKED"}}}"#

    /// Revocation lists from a stand-in for the server, and the folder in which they are stored.
    private struct Subject {
        let service: StandIn
        let script: Script
        let clock: ManualClock
        let http: ProviderHTTP
        let folder: TemporaryFolder

        var source: String { service.url + "/attestation/status" }

        func lists(_ adjust: (inout RevocationSettings) -> Void = { _ in }, limit: Int = 1000) -> RevocationLists {
            var settings = RevocationSettings()
            settings.directory = folder.path
            adjust(&settings)
            return RevocationLists(
                http: http, settings: settings, clock: clock, random: NoRandom(),
                pause: Pauses(clock, limit: limit).pause)
        }
    }

    private func run(_ body: (Subject) async throws -> Void) async throws {
        let script = Script()
        let clock = ManualClock()
        try await StandIn.run { _ in
            script.next() ?? .text(500, "")
        } _: { service in
            try await withHTTP { http in
                try await body(
                    Subject(
                        service: service, script: script, clock: clock, http: http, folder: try TemporaryFolder()))
            }
        }
    }

    @Test func `the first caller waits for the list, and it is fetched once`() async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two))
            let (lists, source) = (test.lists(), test.source)
            let counts = await withTaskGroup(of: Int?.self) { group in
                for _ in 0..<20 { group.addTask { await lists.list(from: source)?.count } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(counts == [Int?](repeating: 2, count: 20))
            #expect(test.service.received.count == 1)
            #expect(test.service.received.first?.path == "/attestation/status")
        }
    }

    @Test func `a list is fetched again after its lifetime, with its entity tag`() async throws {
        try await run { test async throws in
            test.script.then(
                .text(200, Self.two, ["cache-control": "public, max-age=1000", "age": "100", "etag": "\"v1\""]),
                .whole(304, ["cache-control": "max-age=2000"]), .text(200, Self.one))
            let lists = test.lists(limit: 60)
            #expect(await lists.list(from: test.source)?.count == 2)
            #expect(await lists.states().map(\.ageSeconds) == [100])
            // The 60 pauses of 30 s take 1800 s in total. The first answer is 100 s old and valid for 1000 s, so the list is
            // fetched again after 900 s. The second answer is valid for 2000 s, so no third fetch follows.
            await lists.run()
            #expect(test.service.received.map { $0["if-none-match"] } == [nil, "\"v1\""])
            #expect(await lists.states().map(\.ageSeconds) == [900])
            #expect(await lists.list(from: test.source)?.count == 2)
        }
    }

    @Test func `a source that no app names any more is forgotten`() async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two))
            let (lists, source) = (test.lists(limit: 1), test.source)
            #expect(await lists.list(from: source)?.count == 2)
            for named in [nil, [source]] as [Set<String>?] {
                await lists.run { named }
                #expect(await lists.states().map(\.source) == [source])
            }
            await lists.run { [] }
            #expect(await lists.states().isEmpty)
        }
    }

    @Test(arguments: [
        #"{"entries":{}}"#, "", "<html>", "[]", #"{"entries":[]}"#, #"{"entries":{"xyz":{"status":"REVOKED"}}}"#,
        #"{"entries":{"aa11":{"status":"REVOKED"}"#, #"{"entries":{"aa11":{}}}"#,
    ]) func `a list that is broken or lost everything never replaces a good one`(_ text: String) async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two), .text(200, text), .text(200, Self.one))
            let lists = test.lists(limit: 121)
            #expect(await lists.list(from: test.source)?.count == 2)
            // The second answer is bad, so the third fetch waits for the back-off. Until the third answer, the first list stays in
            // use.
            while !Task.isCancelled, test.service.received.count < 2 {
                test.clock.advance(60)
                await lists.refreshAll()
            }
            #expect(await lists.list(from: test.source)?.entry(serialNumber: "AA11") != nil)
            #expect(await lists.states().first?.failure != nil)
            #expect(await test.lists().list(from: test.source)?.count == 2, "what is on disk is the good one, too")
            test.clock.advance(60)
            await lists.refreshAll()
            #expect(await lists.list(from: test.source)?.count == 1)
            #expect(await lists.states().first?.failure == nil)
        }
    }

    @Test func `a list is on disk for the next start, with its age`() async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two, ["etag": "W/\"x\"", "cache-control": "max-age=600"]))
            #expect(await test.lists().list(from: test.source)?.count == 2)
            test.clock.advance(3600)
            let next = test.lists()
            await next.keep([test.source])
            #expect(await next.states().map(\.ageSeconds) == [3600])
            #expect(await next.list(from: test.source)?.count == 2)
            #expect(test.service.received.count == 1)
            test.script.then(.whole(304))
            await next.refreshAll()
            #expect(test.service.received.last?["if-none-match"] == "W/\"x\"")
            #expect(await next.states().map(\.ageSeconds) == [0])
        }
    }

    @Test(arguments: ["truncated", "changed", "other"])
    func `a damaged copy is no list`(_ damage: String) async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two))
            #expect(await test.lists().list(from: test.source)?.count == 2)
            let name = try #require(FileManager.default.contentsOfDirectory(atPath: test.folder.path).first)
            let file = URL(fileURLWithPath: test.folder.path).appendingPathComponent(name)
            var data = try Data(contentsOf: file)
            switch damage {
            case "truncated": data.removeLast(10)
            case "changed": data[data.count - 12] ^= 1
            default: data = Data(String(decoding: data, as: UTF8.self).replacing("status\"", with: "statuz\"").utf8)
            }
            try data.write(to: file)
            #expect(await test.lists().list(from: test.source) == nil)
        }
    }

    @Test func `a list older than the maximum age is not used`() async throws {
        try await run { test async throws in
            test.script.then(.text(200, Self.two))
            let lists = test.lists { $0.maximumAgeSeconds = 7200 }
            #expect(await lists.list(from: test.source)?.count == 2)
            test.clock.advance(7200)
            #expect(await lists.list(from: test.source)?.count == 2)
            test.clock.advance(1)
            #expect(await lists.list(from: test.source) == nil)
            #expect(await lists.states().map(\.isUsable) == [false])
            test.clock.advance(60)
            test.script.then(.text(200, Self.one))
            #expect(await lists.list(from: test.source)?.count == 1)
        }
    }

    @Test func `a failing server is not asked by every registration`() async throws {
        try await run { test async throws in
            let lists = test.lists()
            for _ in 0..<10 { #expect(await lists.list(from: test.source) == nil) }
            #expect(test.service.received.count == 1)
            test.clock.advance(15)
            #expect(await lists.list(from: test.source) == nil)
            #expect(test.service.received.count == 2)
            test.clock.advance(15)
            #expect(await lists.list(from: test.source) == nil)
            #expect(test.service.received.count == 2, "twice as long")
        }
    }

    @Test(arguments: [
        StandIn.Answer.silence, .drip, .text(302, "", ["location": "/other"]), .whole(304),
        .whole(200, [:], [UInt8](repeating: 0x20, count: RevocationStatusList.maximumLength + 1)),
    ]) func `a response that is no list, or comes too late, gives no list`(_ answer: StandIn.Answer) async throws {
        try await run { test async throws in
            test.script.then(answer)
            let start = ContinuousClock.now
            #expect(await test.lists { $0.deadline = .milliseconds(500) }.list(from: test.source) == nil)
            #expect(ContinuousClock.now - start < .seconds(15))
            #expect(test.service.received.count == 1)
        }
    }

    @Test func `the age of a file is its modification time, and the file is read again`() async throws {
        try await run { test async throws in
            let path = test.folder.path + "/list.json"
            try Data(Self.two.utf8).write(to: URL(fileURLWithPath: path))
            func touch(_ seconds: Int64) throws {
                let date = Date(timeIntervalSince1970: TimeInterval((noon + seconds).seconds))
                try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
            }
            try touch(-500)
            let lists = test.lists { $0.maximumAgeSeconds = 1000 }
            #expect(await lists.list(from: path)?.count == 2)
            #expect(await lists.list(from: "file://" + path)?.count == 2)
            #expect(await lists.states().map(\.ageSeconds) == [500, 500])
            test.clock.advance(501)
            #expect(await lists.list(from: path) == nil, "nobody has renewed it")
            try Data(Self.one.utf8).write(to: URL(fileURLWithPath: path))
            try touch(501)
            test.clock.advance(60)
            #expect(await lists.list(from: path)?.count == 1)
        }
    }

    @Test(arguments: ["", "http://android.example/status", "ftp://127.0.0.1/", "https://user:pw@host/", "https://"])
    func `a plain http URL of another machine is not a source of a list`(_ source: String) async throws {
        try await run { test async throws in
            #expect(await test.lists().list(from: source) == nil)
            #expect(await test.lists().states() == [])
        }
    }
}
