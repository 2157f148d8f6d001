import AndroidKeyAttestation
import Foundation
import Testing

@Suite struct StatusListExchangeTests {
    private static let list = Data(#"{"entries":{"2c8cdddf":{"status":"REVOKED","reason":"KEY_COMPROMISE"}}}"#.utf8)

    private func answer(
        _ headers: [(String, String)] = [], status: Int = 200, body: Data = list
    ) throws(StatusListAnswer.Failure) -> StatusListAnswer {
        try StatusListAnswer(status: status, headers: headers.map { (name: $0.0, value: $0.1) }, body: body)
    }

    @Test func `a request asks Google for JSON, and names the list that the caller holds`() {
        let first = StatusListRequest()
        #expect(first.url == "https://android.googleapis.com/attestation/status")
        #expect(first.headers.map(\.name) == ["Accept"])
        let next = StatusListRequest(url: "https://mirror.example/status", holding: "\"v1\"")
        #expect(next.url == "https://mirror.example/status")
        #expect(next.headers.map(\.name) == ["Accept", "If-None-Match"])
        #expect(next.headers.last?.value == "\"v1\"")
    }

    @Test(arguments: ["", "x", "\"a\r\nHost: b\"", "\"a b\"", "\"\u{E9}\"", String(repeating: "t", count: 257)])
    func `an entity tag that is no header value is neither kept nor sent`(tag: String) throws {
        #expect(StatusListRequest(holding: tag).headers.map(\.name) == ["Accept"])
        #expect(try answer([("ETag", tag)]).entityTag == nil)
    }

    @Test func `an answer brings a list with its tag, or says that it is unchanged`() throws {
        let fresh = try answer([("etag", "W/\"7\""), ("ETag", "\"8\"")])
        guard case .list(let list) = fresh.content else {
            Issue.record("\(fresh)")
            return
        }
        #expect(list.entry(serialNumber: "2C8CDDDF")?.status == "REVOKED")
        #expect(fresh.entityTag == "W/\"7\"")
        guard case .unchanged = try answer(status: 304, body: Data()).content else {
            Issue.record("304 is a list")
            return
        }
    }

    @Test(arguments: [201, 204, 301, 302, 403, 404, 429, 500, 503])
    func `another status is a failure, whatever the body holds`(status: Int) {
        let failure = #expect(throws: StatusListAnswer.Failure.self) { try answer(status: status) }
        #expect(failure?.reason == "the server answered \(status)")
    }

    @Test func `a body that is no list is a failure`() {
        let tooLong = Data(repeating: 0x20, count: RevocationStatusList.maximumLength) + Self.list
        for body in [Data(), Data("<html>".utf8), Data("{}".utf8), Self.list.dropLast(), tooLong] {
            let failure = #expect(throws: StatusListAnswer.Failure.self) { try answer(body: body) }
            #expect(failure?.reason.hasPrefix("not a status list") == true)
        }
    }

    @Test(
        arguments: [
            ([("Cache-Control", "public, max-age=4000")], 0, 4000),
            ([("cache-control", "max-age=4000"), ("age", "1000")], 1000, 3000),
            ([("cache-control", "Max-Age=\"4000\"")], 0, 4000),
            ([("cache-control", "s-maxage=9, max-age=4000")], 0, 4000),
            ([("cache-control", "no-cache, max-age=4000")], 0, 300), ([("cache-control", "no-store")], 0, 300),
            ([("cache-control", "max-age=4000"), ("age", "5000")], 5000, 300),
            ([("cache-control", "max-age=4000"), ("age", "1209600")], 1_209_600, 300),
            ([("age", "99999999999999999999")], 1 << 31, 300),
            ([("cache-control", "max-age=99999999999999999999")], 0, 3600),
            ([("cache-control", "max-age=172800"), ("age", "90000")], 90_000, 82_800),
            ([("cache-control", "max-age=-1")], 0, 3600),
            ([("cache-control", "max-age=999999999")], 0, 86_400), ([], 0, 3600), ([("age", "-3")], 0, 3600),
        ] as [([(String, String)], Int64, Int64)])
    func `a list is fresh for max-age less Age, within limits`(
        headers: [(String, String)], age: Int64, fresh: Int64
    ) throws {
        let answer = try answer(headers)
        #expect(answer.age == age)
        #expect(answer.freshFor == fresh)
    }
}
