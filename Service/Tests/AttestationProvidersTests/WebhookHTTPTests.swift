import AuthService
import Dispatch
import Testing

import class Bytes.Locked

@testable import AttestationProviders

/// Webhook receivers over HTTP: the effects of their answers, and the addresses that are allowed.
@Suite struct WebhookHTTPTests {
    private func post(
        to url: String, within deadline: Duration = .seconds(10), allowingHTTP: Bool = false
    ) async throws -> WebhookOutcome {
        let transport = WebhookHTTP(deadline: deadline)
        let outcome = await transport.post(
            WebhookRequest(
                url: try WebhookURL(url, allowingHTTP: allowingHTTP), headers: [("webhook-id", "evt_1")],
                body: Array(#"{"type":"device.revoked"}"#.utf8)))
        await transport.shutdown()
        return outcome
    }

    @Test func `a delivery is a POST with its headers and body`() async throws {
        try await StandIn.run { _ in
            .whole(204)
        } _: { receiver async throws in
            #expect(try await post(to: receiver.url + "/a?b=c") == .answered(status: 204))
            let received = try #require(receiver.received.first)
            #expect(received.method == "POST" && received.path == "/a" && received["webhook-id"] == "evt_1")
            #expect(received.text == #"{"type":"device.revoked"}"# && received["Authorization"] == nil)
        }
    }

    @Test func `a redirect is not followed`() async throws {
        try await StandIn.run { request in
            request.path == "/moved" ? .whole(200) : .whole(307, ["Location": "/moved"])
        } _: { receiver async throws in
            #expect(try await post(to: receiver.url) == .answered(status: 307))
            #expect(receiver.received.count == 1)
        }
    }

    @Test(.timeLimit(.minutes(5))) func `a receiver that never answers costs the deadline`() async throws {
        try await StandIn.run { _ in
            .silence
        } _: { receiver async throws in
            let outcome = try await post(to: receiver.url, within: .milliseconds(300))
            #expect(outcome == .failed("no answer in time"))
        }
    }

    @Test func `a receiver's endless body is not read to its end`() async throws {
        try await StandIn.run { _ in
            .drip
        } _: { receiver async throws in
            #expect(try await post(to: receiver.url) == .answered(status: 200))
        }
    }

    @Test func `a receiver's large body is not read`() async throws {
        try await StandIn.run { _ in
            .whole(200, [:], [UInt8](repeating: 0x20, count: 1 << 20))
        } _: { receiver async throws in
            #expect(try await post(to: receiver.url) == .answered(status: 200))
        }
    }

    @Test func `a receiver that is not there, and a name that does not resolve, are failures`() async throws {
        #expect(try await post(to: "http://127.0.0.1:1/") == .failed("no connection, or no HTTP answer"))
        #expect(
            try await post(to: "https://receiver.invalid/") == .failed("the name of the host does not resolve"))
    }

    @Test func `a receiver without a trusted certificate is named as such`() async throws {
        // The receiver answers TLS with plain HTTP.
        try await StandIn.run { _ in
            .whole(200, [:], [])
        } _: { receiver async throws in
            let url = "https://" + receiver.url.dropFirst("http://".count)
            guard case .failed(let reason) = try await post(to: url) else {
                Issue.record("delivered")
                return
            }
            #expect(reason.hasPrefix("TLS failed"), "\(reason)")
        }
    }

    @Test(arguments: [
        "http://127.1:1/", "http://2130706433:1/", "http://0x7f000001:1/", "http://0.0.0.0:1/", "http://0:1/",
        "https://169.254.169.254/latest/meta-data", "https://[fe80::1]/", "https://[::ffff:127.0.0.1]/",
        "https://[fec0::1]/", "https://[2001::1]/", "https://[::ffff:0:a00:1]/",
        "https://[fd00:ec2::254]/", "https://[fd20:ce::254]/", "https://[fd00:c1::a9fe:a9fe]/",
        "https://[fd00:42::42]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b:1:a9fe:a9:fe00:808:808]/",
        "https://[64:ff9b:0:1::808:808]/", "https://100.100.100.200/",
    ]) func `no connection is made to a forbidden address, however it is written`(url: String) async throws {
        #expect(
            try await post(to: url, allowingHTTP: true)
                == .failed("the host resolves to an address that webhooks may not use"))
    }

    @Test func `a lookup that hangs delays no other name and no address`() async throws {
        let (gate, asked) = (DispatchSemaphore(value: 0), Locked(0))
        let address = try #require(WebhookAddress.all(of: "192.0.2.7", literal: true))
        let hanging = { @Sendable (_: String) -> [WebhookAddress]? in
            asked.withLock { $0 += 1 }
            gate.wait()
            return address
        }
        try await withThrowingTaskGroup(of: [WebhookAddress]?.self) { group in
            for _ in 0..<4 {
                group.addTask { await ReceiverAddress.lookUp("hangs.example", within: .seconds(600), by: hanging) }
            }
            while asked.withLock({ $0 }) == 0 { await Task.yield() }
            #expect(
                await ReceiverAddress.lookUp("other.example", within: .seconds(600), by: { _ in address }) == address)
            #expect(try await ReceiverAddress.find("192.0.2.7", loopback: false) == "192.0.2.7")
            gate.signal()
            #expect(try await group.next() == .some(address))
            // A caller that arrived after the first answer starts another lookup, which needs its own signal.
            for _ in 0..<4 { gate.signal() }
            for try await found in group { #expect(found == address) }
        }
    }

    @Test(
        arguments: [
            ([127, 0, 0, 1], false, true), ([127, 255, 0, 1], false, true), ([10, 0, 0, 1], true, true),
            ([192, 168, 1, 1], true, true), ([203, 0, 113, 7], true, true), ([169, 254, 0, 1], false, false),
            ([224, 0, 0, 1], false, false), ([255, 255, 255, 255], false, false), ([0, 0, 0, 0], false, false),
            ([168, 63, 129, 16], false, false), ([], false, false), ([1, 2, 3], false, false),
        ] as [([UInt8], Bool, Bool)])
    func `an IPv4 address is allowed or not`(bytes: [UInt8], named: Bool, loopback: Bool) {
        #expect(WebhookAddress.isAllowed(bytes, loopback: false) == named)
        #expect(WebhookAddress.isAllowed(bytes, loopback: true) == loopback)
        guard bytes.count == 4 else { return }
        let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + bytes
        let translated = [0, 0x64, 0xFF, 0x9B] + [UInt8](repeating: 0, count: 8) + bytes
        let sixToFour = [0x20, 0x02] + bytes + [UInt8](repeating: 0, count: 10)
        for address in [mapped, translated, sixToFour] {
            #expect(WebhookAddress.isAllowed(address, loopback: false) == named, "\(address)")
        }
    }
}
