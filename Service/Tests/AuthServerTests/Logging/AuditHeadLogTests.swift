import AuthContract
import AuthService
import Bytes
import Logging
import ServiceTestHelpers
import StoreConformance
import Testing

@testable import AuthServer

/// The service logs audit heads (the signed end of the audit log at some time), and reports a log that no longer has
/// the event of the last logged head.
@Suite struct AuditHeadLogTests {
    /// An audit log whose end the test sets.
    private final class Links: AuditLog {
        let links = Locked<[AuditLink]>([])

        func append(_ event: AuditEvent) async throws(StoreError) {}

        func events(
            app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] { [] }

        func events(
            app: AppID?, device: DeviceID?, after: Int64, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] { [] }

        func firstBrokenLink() async throws(StoreError) -> Int64? { nil }

        func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? {
            // Behaves like a store that does not answer cancelled callers.
            guard !Task.isCancelled else { throw StoreError(.unavailable, "the caller has gone") }
            return links.withLock { links in
                sequence.map { wanted in links.first { $0.sequence == wanted } } ?? links.last
            }
        }

        func set(_ hashes: UInt8...) {
            links.withLock {
                $0 = hashes.enumerated().map { number, byte in
                    AuditLink(sequence: Int64(number) + 1, hash: [UInt8](repeating: byte, count: 32))
                }
            }
        }
    }

    private let lines = LogLines()
    private let links = Links()
    private let metrics = ServerMetrics(startedAt: UnixTime(0))

    private func log() throws -> AuditHeadLog {
        let memory = MemoryStores()
        let stores = AuthService.Stores(
            challenges: memory, replay: memory, apps: memory, devices: memory, audit: links, credentials: memory,
            signingKeys: memory)
        let service = AuthService(stores: stores, key: try #require(ServiceKey([UInt8](repeating: 7, count: 32))))
        return AuditHeadLog(trail: service.auditTrail, logger: lines.logger, metrics: metrics)
    }

    @Test func `a head is logged and a log that grew keeps it`() async throws {
        links.set(1, 2)
        let first = try await log().write(after: nil)
        links.set(1, 2, 3)
        let second = try await log().write(after: first)
        #expect(lines.all.map(\.level) == [.notice, .notice])
        let text = try #require(lines.all.first?.metadata["head"])
        #expect(try AuditHead(text).sequence == 2)
        #expect(second?.sequence == 3)
    }

    @Test(arguments: [[1], [1, 9, 3]] as [[UInt8]]) func `a log that lost its head is reported`(
        hashes: [UInt8]
    ) async throws {
        links.set(1, 2)
        let first = try await log().write(after: nil)
        hashes.count == 1 ? links.set(hashes[0]) : links.set(hashes[0], hashes[1], hashes[2])
        _ = try await log().write(after: first)
        #expect(lines.all.map(\.level) == [.notice, .critical, .notice])
        #expect(metrics.text().contains(#"synheart_security_events_total{event="audit_log_tampered"} 1"#))
    }

    @Test func `a head is logged at the start, every hour and at the end`() async throws {
        links.set(1)
        let (log, lines) = (try log(), lines)
        var waits: [Duration] = []
        await log.run { duration in
            waits.append(duration)
            // `run` logs a head before each wait. When the third wait throws, `run` logs a fourth head and ends.
            #expect(lines.all.count == waits.count)
            if waits.count == 3 { throw CancellationError() }
        }
        #expect(waits == [Duration](repeating: .seconds(3600), count: 3))
        #expect(lines.all.count == 4)
        #expect(lines.all.allSatisfy { $0.message == "audit head" })
    }

    @Test func `a head is logged at a stop, which cancels the task`() async throws {
        links.set(1)
        let log = try log()
        let (waits, waiting) = AsyncStream.makeStream(of: Void.self)
        let run = Task {
            await log.run { _ in
                waiting.yield()
                try await Task.sleep(for: .seconds(3600))
            }
        }
        for await _ in waits { break }
        run.cancel()
        await run.value
        #expect(lines.all.map(\.message) == ["audit head", "audit head"])
    }

    @Test func `a server logs heads by itself`() async throws {
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { _ in }
        let heads = lines.all.filter { $0.message == "audit head" }.compactMap { $0.metadata["head"] }
        #expect(heads.count == 2)
        #expect(try heads.allSatisfy { try AuditHead($0).sequence == 1 })
    }
}
