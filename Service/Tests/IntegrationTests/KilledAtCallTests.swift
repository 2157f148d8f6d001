import Foundation
import StrictJSON
import Testing

/// The service is killed as it enters each of the system calls by which it writes and answers. Random kills would hit most of
/// these moments only once in thousands of runs.
@Suite struct KilledAtCall {
    /// The calls that write the database, make it durable, and send an answer.
    private static let calls = ["pwrite64", "fdatasync", "write", "writev"]
    /// The values of n for which the service is killed at a thread's n-th call. `KILLED_AT_EVERY_CALL=1` adds more.
    private static let occurrences =
        ProcessInfo.processInfo.environment["KILLED_AT_EVERY_CALL"] == nil ? [1, 3, 6] : Array(1...16)

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(
        .enabled(if: Tracer.canAttach, "scripts/prepare strace, and the right to trace"),
        arguments: LoadClient.Act.allCases)
    func `nothing acknowledged is lost or half written, whichever call was the last`(
        act: LoadClient.Act
    ) async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        var client = LoadClient(fixture, seed: 1)
        var deaths: [String: Int] = [:]
        for call in Self.calls {
            for occurrence in Self.occurrences {
                let service = try await fixture.start()
                await client.check(service)
                // Registers the device that `act` needs, before strace counts calls.
                _ = await client.act(.register, service)
                let tracer = try #require(
                    Tracer(of: service.processID, killingAt: call, occurrence: occurrence), "strace does not attach")
                // The following requests reach calls that come after the answer, such as making claims durable.
                var isAnswered = await client.act(act, service)
                for _ in 0..<3 where isAnswered { isAnswered = await client.act(.sign, service) }
                let died = !isAnswered
                if died { deaths[call, default: 0] += 1 }
                service.kill()
                tracer.waitUntilItEnds()
                let restarted = try await fixture.start()
                await client.check(restarted)
                try await expectWhole(restarted, fixture)
                #expect(restarted.stop() == 0)
                if !died { break }
            }
        }
        let told = "\(act): \(client.problems.prefix(10))"
        if !client.problems.isEmpty { Issue.record(Comment(rawValue: told)) }
        print(
            "killed at a call while it had to \(act): \(deaths.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })"
        )
        #expect((deaths["pwrite64", default: 0] > 0 && deaths["fdatasync", default: 0] > 0) || act == .sign)
        #expect(deaths["write", default: 0] + deaths["writev", default: 0] > 0)
    }

    /// Checks that each change has its audit event, and each event its change.
    private func expectWhole(_ service: RunningService, _ fixture: ServiceFixture) async throws {
        func get(_ path: String) async throws -> JSONObject {
            let answer = await WireConnection.exchange(
                port: service.operationsPort, fixture.administer("GET", path))
            return try #require(answer?.status == 200 ? answer : nil, "\(answer?.text ?? path)").json
        }
        #expect(try await get("/audit/verify")["intact"]?.bool == true)
        let devices = try await get("/devices?app_id=\(DevelopmentDevice.appID)&limit=1000")["devices"]?.array ?? []
        let events = try await get("/audit?limit=1000")["events"]?.array ?? []
        func named(_ code: String) -> [String] {
            events.compactMap { event in
                event.object?["code"]?.string == code ? event.object?["device_id"]?.string : nil
            }.sorted()
        }
        func ids(_ isMeant: (JSONObject) -> Bool) -> [String] {
            devices.compactMap(\.object).filter(isMeant).compactMap { $0["device_id"]?.string }.sorted()
        }
        #expect(events.count < 1000)
        #expect(named("device.registered") == ids { _ in true })
        #expect(named("device.revoked") == ids { $0["status"]?.string == "revoked" })
        #expect(Set(named("device.key_rotated")) == Set(ids { $0["key_rotated_at"]?.isNull == false }))
    }
}
