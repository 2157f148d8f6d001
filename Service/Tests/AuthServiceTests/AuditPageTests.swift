import AuthContract
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

@Suite("Pages of the audit log")
struct AuditPageTests {
    private let log = MemoryStores(clock: SystemClock())

    private func append(_ count: Int, bytes: Int) async throws {
        for number in 0..<count {
            let detail = JSONObject([("text", .string(String(repeating: "a", count: bytes)))])
            try await log.append(
                AuditEvent(.securityEvent, at: UnixTime(Int64(number)), actor: "test", detail: detail))
        }
    }

    @Test(
        "a page has as many events as asked for, and is the last one if fewer match", arguments: [1, 50, 51, 120, 121])
    func counts(limit: Int) async throws {
        try await append(120, bytes: 1)
        let newest = try await log.page(app: nil, device: nil, codes: nil, after: 0, before: nil, limit: limit)
        #expect(newest.events.map(\.sequence) == Array((1...120).reversed().prefix(limit).map { Int64($0) }))
        #expect(newest.isLast == (limit > 120))
        let oldest = try await log.page(app: nil, device: nil, after: 0, limit: limit)
        #expect(oldest.events.map(\.sequence) == Array((1...120).prefix(limit).map { Int64($0) }))
        #expect(oldest.isLast == (limit > 120))
    }

    @Test("a page of large events ends at four mebibytes, and the next ones have the rest")
    func bytes() async throws {
        try await append(15, bytes: 500_000)
        var (read, before, pages) = ([Int64](), Int64?.none, 0)
        while true {
            let page = try await log.page(app: nil, device: nil, codes: nil, after: 0, before: before, limit: 1000)
            #expect(page.events.count <= 9)
            read += page.events.map(\.sequence)
            pages += 1
            guard !page.isLast else { break }
            before = try #require(page.events.last).sequence
        }
        #expect(read == Array((1...15).reversed().map { Int64($0) }))
        #expect(pages == 2)
        let oldest = try await log.page(app: nil, device: nil, after: 3, limit: 1000)
        #expect(oldest.events.map(\.sequence) == Array(4...12))
        #expect(!oldest.isLast)
    }
}
