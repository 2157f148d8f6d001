import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The platform's transport against a server on this machine that answers a fixed text, or nothing.
@Suite(.serialized) struct TransportTests {
    private func send(
        _ answer: String?, path: String = "/", limit: Int = 1000, deadline: Duration = .seconds(5),
        over transport: any HTTPTransport = DefaultTransport()
    ) async throws -> Result<TransportResponse, TransportError> {
        let server = try LocalServer(answer)
        defer { server.stop() }
        let request = TransportRequest(
            method: "POST", url: "http://127.0.0.1:\(server.port)\(path)", headers: HeaderFields([("X-Test", "1")]),
            body: [1, 2, 3], deadline: deadline, maximumAnswer: limit)
        do throws(TransportError) {
            return .success(try await transport.send(request))
        } catch {
            return .failure(error)
        }
    }

    @Test("the transport returns status, headers and body")
    func answers() async throws {
        let answer = try await send("HTTP/1.1 409 Conflict\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi").get()
        #expect(answer.status == 409 && answer.body == Array("hi".utf8) && answer.headers.values("x-a") == ["b"])
    }

    @Test("a redirect, or a demand for a password, is returned", arguments: [301, 302, 307, 308, 401, 407])
    func returned(status: Int) async throws {
        let answer = try await send(
            "HTTP/1.1 \(status) No\r\nLocation: http://127.0.0.1:1/\r\nWWW-Authenticate: Basic realm=\"a\"\r\n"
                + "Proxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 2\r\n\r\nno"
        ).get()
        #expect(answer.status == status && answer.body == Array("no".utf8))
    }

    @Test(
        "a URL that must be escaped is not sent",
        arguments: ["/a|b", "/a\"b", "/?a=<b>", "/a^b", "/a b"])
    func rewritten(path: String) async throws {
        let result = try await send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", path: path)
        guard case .failure(let error) = result else {
            Issue.record("it was sent")
            return
        }
        #expect(error.isUnsendable)
        #expect(
            try await send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", path: "/a%7Cb?c=d%20e&f='(g)'").get().status
                == 200)
    }

    #if canImport(Darwin)
        @Test("a session of the app's own keeps to size and deadline, follows no redirect, and stays usable")
        func sharedSession() async throws {
            let transport = URLSessionTransport(session: .shared)
            let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
            #expect(try await send(redirect, over: transport).get().status == 302)
            let large = try await send(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", limit: 2, over: transport)
            #expect(throws: TransportError.tooLarge) { try large.get() }
            let silent = try await send(nil, deadline: .milliseconds(300), over: transport)
            #expect(throws: TransportError.self) { try silent.get() }
            let answer = try await send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", over: transport).get()
            #expect(answer.body == Array("hi".utf8))
        }
    #endif

    @Test(
        "any limit may be named",
        arguments: [(Int.max, true), (2, true), (1, false), (0, false), (-1, false), (.min, false)])
    func anyLimit(limit: Int, fits: Bool) async throws {
        let result = try await send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", limit: limit)
        #expect((try? result.get().body) == (fits ? Array("hi".utf8) : nil))
    }

    @Test(
        "an answer that ends early fails",
        arguments: [
            "", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nX-A: b\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        ])
    func endsEarly(answer: String) async throws {
        let result = try await send(answer)
        let error = #expect(throws: TransportError.self) { try result.get() }
        #expect(error?.isUnsendable == false)
    }

    @Test("an interim answer precedes the final one")
    func interim() async throws {
        let answer = try await send(
            "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        ).get()
        #expect(answer.status == 200 && answer.body == Array("hi".utf8))
        #expect(!answer.headers.contains("X-A") && answer.headers.values("content-length") == ["2"])
    }

    @Test("an answer beyond the limit fails")
    func limit() async throws {
        let body = String(repeating: "x", count: 5000)
        let result = try await send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n\(body)")
        #expect(throws: TransportError("the answer is too large")) { try result.get() }
    }

    @Test("an answer of the limit's size arrives")
    func exactLimit() async throws {
        let answer = try await send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", limit: 3).get()
        #expect(answer.body == Array("abc".utf8))
    }

    @Test("a request has 30 seconds and 4 MiB by default")
    func defaults() {
        let request = TransportRequest(method: "GET", url: "", headers: HeaderFields(), body: [])
        let upload = TransportRequest(method: "PUT", url: "", headers: HeaderFields(), bodyFile: "/x")
        for request in [request, upload] {
            #expect(request.deadline == .seconds(30) && request.maximumAnswer == 4_194_304)
        }
    }

    @Test("an exchange ends at its deadline")
    func deadline() async throws {
        let result = try await send(nil, deadline: .milliseconds(200))
        #expect(throws: TransportError.self) { try result.get() }
    }

    @Test("a deadline of less than a second leaves that time")
    func shortDeadline() async throws {
        let begin = ContinuousClock.now
        _ = try await send(nil, deadline: .milliseconds(300))
        #expect(begin.duration(to: .now) >= .milliseconds(300))
    }

    @Test("an answer that comes byte by byte does not extend the deadline")
    func slowAnswer() async throws {
        let server = try LocalServer("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", trickles: true)
        defer { server.stop() }
        let request = TransportRequest(
            method: "GET", url: "http://127.0.0.1:\(server.port)/", headers: HeaderFields(), body: [],
            deadline: .milliseconds(500))
        await #expect(throws: TransportError("no answer in time")) { try await DefaultTransport().send(request) }
    }

    @Test("a cancelled exchange ends at once", .timeLimit(.minutes(15)), arguments: [true, false])
    func cancelled(isBegun: Bool) async throws {
        let server = try LocalServer(nil)
        defer { server.stop() }
        let request = TransportRequest(
            method: "GET", url: "http://127.0.0.1:\(server.port)/", headers: HeaderFields(), body: [],
            deadline: .seconds(300))
        let exchange = Task {
            if !isBegun { withUnsafeCurrentTask { $0?.cancel() } }
            return try await DefaultTransport().send(request)
        }
        if isBegun {
            try await eventually { server.received != nil }
            exchange.cancel()
        }
        await #expect(throws: TransportError("cancelled")) { try await exchange.value }
    }

    @Test("the request arrives as it is: method, target, headers and body", arguments: [[], [1, 2, 3]] as [[UInt8]])
    func request(body: [UInt8]) async throws {
        let server = try LocalServer("HTTP/1.1 204 No Content\r\n\r\n")
        defer { server.stop() }
        let request = TransportRequest(
            method: "PATCH", url: "http://127.0.0.1:\(server.port)/a%20b?c=d",
            headers: HeaderFields([("X-Test", "1 2"), ("User-Agent", SDKVersion.userAgent)]),
            body: body)
        #expect(try await DefaultTransport().send(request).status == 204)
        let received = try #require(server.received)
        #expect(received.head.hasPrefix("PATCH /a%20b?c=d HTTP/1.1\r\n") && received.body == body)
        let lines = received.head.lowercased().split(separator: "\r\n")
        #expect(lines.contains("x-test: 1 2"))
        #expect(lines.filter { $0.hasPrefix("user-agent:") } == ["user-agent: \(SDKVersion.userAgent)"])
    }

    @Test("a cookie of one answer is in no later request")
    func cookies() async throws {
        let transport = DefaultTransport()
        for round in 0..<2 {
            let server = try LocalServer("HTTP/1.1 204 No Content\r\nSet-Cookie: a=b; Path=/\r\n\r\n")
            defer { server.stop() }
            _ = try await transport.send(
                TransportRequest(
                    method: "GET", url: "http://127.0.0.1:\(server.port)/\(round)", headers: HeaderFields(), body: []))
            let head = try #require(server.received).head.lowercased()
            #expect(head.hasPrefix("get /\(round)") && !head.contains("\r\ncookie:"))
        }
    }

    @Test("one transport runs exchanges beside each other, each with its own answer")
    func concurrent() async throws {
        let transport = DefaultTransport()
        let servers = try (0..<4).map { try LocalServer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\($0)") }
        defer { for server in servers { server.stop() } }
        let bodies = try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            for (index, server) in servers.enumerated() {
                group.addTask {
                    let request = TransportRequest(
                        method: "GET", url: "http://127.0.0.1:\(server.port)/", headers: HeaderFields(), body: [])
                    return (index, try await transport.send(request).body)
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(bodies == [0: [0x30], 1: [0x31], 2: [0x32], 3: [0x33]])
    }

    @Test("a refused connection fails")
    func refused() async throws {
        let request = TransportRequest(method: "GET", url: "http://127.0.0.1:1/", headers: HeaderFields(), body: [])
        await #expect(throws: TransportError.self) { try await DefaultTransport().send(request) }
    }
}
