#if !canImport(Security)
    import AuthContract
    import Bytes
    import Foundation
    import TestHelpers
    import Testing

    @testable import SynheartAuth

    /// Tests that the transport prevents some default behavior of libcurl.
    @Suite struct CurlTransportTests {
        private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

        private func exchange(
            _ method: String, _ path: String = "/", _ headers: [(String, String)] = [], body: [UInt8] = [],
            answer: String = ok, limit: Int = 1000
        ) async throws -> (answer: TransportResponse, head: String, body: [UInt8]) {
            let server = try LocalServer(answer)
            defer { server.stop() }
            let answer = try await CurlTransport().send(
                TransportRequest(
                    method: method, url: "http://127.0.0.1:\(server.port)\(path)", headers: HeaderFields(headers),
                    body: body, maximumAnswer: limit))
            let received = try #require(server.received)
            return (answer, received.head, received.body)
        }

        private static func lines(_ head: String) -> [String] {
            head.lowercased().split(separator: "\r\n").map(String.init)
        }

        @Test(
            "a request that libcurl would change is not sent",
            arguments: [
                ("GET", "http://127.0.0.1:1/", [1]), ("head", "http://127.0.0.1:1/", [1]),
                ("GET /a HTTP/1.1\r\nX: y\r\n\r\nGET", "http://127.0.0.1:1/", []), ("", "http://127.0.0.1:1/", []),
                ("GET", "file:///etc/passwd", []), ("GET", "ftp://127.0.0.1:1/", []), ("GET", "127.0.0.1:1/", []),
                ("GET", "http://127.0.0.1:1/a\r\nX-B: c", []), ("GET", "http://127.0.0.1:1/\u{E9}", []),
            ] as [(String, String, [UInt8])])
        func unsendable(method: String, url: String, body: [UInt8]) async {
            let request = TransportRequest(method: method, url: url, headers: HeaderFields(), body: body)
            let error = await #expect(throws: TransportError.self) { try await CurlTransport().send(request) }
            #expect(error?.isUnsendable == true)
        }

        @Test(
            "a header that is no single line is not sent",
            arguments: [("X-A", "b\r\nX-C: d"), ("X-A", "b\0"), ("X-A\r\nX-B", "c"), ("X A", "b"), ("", "b")])
        func badHeader(name: String, value: String) async {
            let request = TransportRequest(
                method: "GET", url: "http://127.0.0.1:1/", headers: HeaderFields([(name, value)]), body: [])
            let error = await #expect(throws: TransportError.self) { try await CurlTransport().send(request) }
            #expect(error?.isUnsendable == true)
        }

        @Test("user information in a URL is not sent as a password")
        func userInformation() async throws {
            let server = try LocalServer(Self.ok)
            defer { server.stop() }
            let request = TransportRequest(
                method: "GET", url: "http://a:b@127.0.0.1:\(server.port)/", headers: HeaderFields(), body: [])
            await #expect(throws: TransportError.self) { try await CurlTransport().send(request) }
            #expect(server.received == nil)
        }

        @Test("the target arrives as it is", arguments: ["/a/../b", "/./a", "/a//b/", "/?", "/a?b=/../c", "/%2e%2E/a"])
        func target(path: String) async throws {
            #expect(try await exchange("GET", path).head.hasPrefix("GET \(path) HTTP/1.1\r\n"))
        }

        @Test("a large body is sent at once, with its length", arguments: ["POST", "PUT", "DELETE", "REPORT"])
        func largeBody(method: String) async throws {
            let body = (0..<2_000_003).map { UInt8(truncatingIfNeeded: $0 &* 3) }
            let received = try await exchange(method, body: body)
            #expect(received.body == body && received.head.hasPrefix("\(method) / HTTP/1.1\r\n"))
            let lines = Self.lines(received.head)
            #expect(lines.contains("content-length: 2000003"))
            #expect(
                !lines.contains { $0.hasPrefix("expect") || $0.hasPrefix("transfer-") || $0.hasPrefix("content-type") })
        }

        @Test(
            "a request without a body has a length only if its method expects a body",
            arguments: [("POST", true), ("PUT", true), ("PATCH", true), ("GET", false), ("DELETE", false)])
        func noBody(method: String, hasLength: Bool) async throws {
            let lines = Self.lines(try await exchange(method).head)
            #expect(lines.contains("content-length: 0") == hasLength)
            #expect(!lines.contains { $0.hasPrefix("transfer-") || $0.hasPrefix("content-type") })
        }

        @Test("headers arrive as they are, also an empty one; those of the transport are its own")
        func headers() async throws {
            let lines = Self.lines(
                try await exchange(
                    "POST", "/",
                    [
                        ("X-Empty", ""), ("X-Two", "1"), ("X-Two", "2"), ("Content-Length", "99"), ("Host", "other"),
                        ("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain"),
                    ], body: [1, 2]
                ).head)
            #expect(lines.contains("x-empty:") && lines.contains("x-two: 1") && lines.contains("x-two: 2"))
            #expect(lines.filter { $0.hasPrefix("content-") } == ["content-type: text/plain", "content-length: 2"])
            #expect(lines.count { $0.hasPrefix("host: 127.0.0.1:") } == 1)
            #expect(!lines.contains { $0.hasPrefix("transfer-") || $0 == "host: other" })
        }

        @Test("a HEAD returns the head, without waiting for a body")
        func head() async throws {
            let answer = try await exchange("HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").answer
            #expect(
                answer.status == 200 && answer.body.isEmpty && answer.headers.values("content-length") == ["1000000"])
        }

        @Test("no compression is asked for, and a compressed answer arrives as it is")
        func compressed() async throws {
            let received = try await exchange(
                "GET", answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 4\r\n\r\nzzzz")
            #expect(received.answer.body == Array("zzzz".utf8))
            #expect(received.answer.headers.values("Content-Encoding") == ["gzip, gzip"])
            #expect(!received.head.lowercased().contains("accept-encoding"))
        }

        @Test(
            "an answer with another transfer coding than chunked fails",
            arguments: ["gzip, chunked", "gzip", "chunked\r\nTransfer-Encoding: deflate"])
        func transferCoding(coding: String) async {
            await #expect(throws: TransportError.self) {
                try await exchange("GET", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n0\r\n\r\n")
            }
        }

        @Test(
            "a request that was sent is never called unsendable, whatever the answer is",
            arguments: [
                "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n",
                "RTSP/1.0 200 OK\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/9.9 200 OK\r\n\r\n",
                "HTTP/1.1 302 Found\r\nLocation: gopher://[::/\r\nContent-Length: 9\r\n\r\n",
            ])
        func strangeAnswer(answer: String) async {
            let error = await #expect(throws: TransportError.self) {
                try await exchange("POST", body: [1], answer: answer)
            }
            #expect(error?.isUnsendable == false, "\(String(describing: error))")
        }

        @Test("a complete answer counts, though the server closes the connection before it has read the request")
        func earlyAnswer() async throws {
            let listener = try Listener()
            defer { listener.stop() }
            listener.accept { connection in
                var byte: UInt8 = 0
                recv(connection, &byte, 1, 0)
                let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".utf8)
                _ = answer.withUnsafeBytes { Foundation.send(connection, $0.baseAddress, $0.count, 0) }
                close(connection)
                return true
            }
            let request = TransportRequest(
                method: "POST", url: "http://127.0.0.1:\(listener.port)/", headers: HeaderFields(),
                body: [UInt8](repeating: 1, count: 20_000_000))
            // Closing the connection while the request arrives sends a TCP reset. It may reach the client before the client has read the
            // answer.
            var answers = 0
            for _ in 0..<30 where (try? await CurlTransport().send(request))?.body == Array("hello".utf8) {
                answers += 1
            }
            #expect(answers > 0)
        }

        @Test(
            "a malformed head fails",
            arguments: [
                "HTTP/1.1 200 OK\r\nX A: b\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "hello\r\n\r\n",
                "HTTP/1.1 200 OK\r\n X: folded first\r\n\r\n",
            ])
        func malformed(answer: String) async {
            await #expect(throws: TransportError.self) { try await exchange("GET", answer: answer) }
        }

        @Test("an endless head fails")
        func endlessHead() async {
            let line = "X-A: \(String(repeating: "b", count: 1000))\r\n"
            await #expect(throws: TransportError("the answer's head is malformed, too large, or has a transfer coding"))
            {
                try await exchange("GET", answer: "HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 300))
            }
        }

        @Test("200 requests at once are all answered")
        func many() async throws {
            let server = try CountingServer()
            defer { server.stop() }
            let answers = await withTaskGroup(of: Int?.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let headers = HeaderFields([("X-Id", "\(number)"), ("X-Synheart-Nonce", "\(number)")])
                        return try? await CurlTransport().send(
                            TransportRequest(
                                method: "POST", url: "http://127.0.0.1:\(server.port)/", headers: headers, body: [1])
                        ).status
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers == Array(repeating: 200, count: 200))
        }
    }

    extension Heavy {
        @Suite struct IdleExchangeTests {
            @Test("an exchange that waits for its answer uses no processor")
            func idle() async throws {
                let server = try LocalServer(nil)
                defer { server.stop() }
                let request = TransportRequest(
                    method: "POST", url: "http://127.0.0.1:\(server.port)/", headers: HeaderFields(), body: [1],
                    deadline: .seconds(2))
                let before = clock()
                await #expect(throws: TransportError("no answer in time")) { try await CurlTransport().send(request) }
                #expect(Double(clock() - before) / Double(CLOCKS_PER_SEC) < 0.5)
            }
        }
    }

    /// The reader of an answer's head.
    @Suite struct AnswerHeadTests {
        private func head(_ lines: String...) -> AnswerHead? {
            var head = AnswerHead()
            return lines.allSatisfy { head.take(Array("\($0)\r\n".utf8)) } ? head : nil
        }

        @Test("a head is complete after its blank line")
        func complete() throws {
            #expect(try #require(head("HTTP/1.1 200 OK", "X-A: b")).status == nil)
            let complete = try #require(head("HTTP/1.1 200 OK", "X-A: b", "x-a:  c ", "X-B:", "", "X-Trailer: d"))
            #expect(complete.status == 200)
            #expect(complete.headers == HeaderFields([("X-A", "b"), ("x-a", "c"), ("X-B", "")]))
        }

        @Test("an interim head is dropped; 101 is final")
        func interim() throws {
            let last = try #require(head("HTTP/1.1 100 Continue", "X-A: b", "", "HTTP/1.1 204", "X-C: d", ""))
            #expect(last.status == 204 && last.headers == HeaderFields([("X-C", "d")]))
            #expect(head("HTTP/1.1 101 Switching Protocols", "")?.status == 101)
            #expect(head("HTTP/1.1 100 Continue", "", "X-A: b") == nil)
        }

        @Test("a folded line continues its value")
        func folded() throws {
            #expect(head("HTTP/1.1 200 OK", "X-A: b", "\tc ", "")?.headers == HeaderFields([("X-A", "b c")]))
            var many = AnswerHead()
            let lines = ["HTTP/1.1 200 OK\r\n", "X-A: b\r\n"] + Array(repeating: " c\r\n", count: 101)
            #expect(lines.prefix { many.take(Array($0.utf8)) }.count == 102)
        }

        @Test(
            "a malformed line is refused",
            arguments: [
                "", "X-A: b", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 099", "HTTP/1.1 2x0 OK", " folded",
            ])
        func malformed(first: String) { #expect(head(first) == nil) }

        @Test("heads and trailer are bounded together")
        func bounded() {
            var head = AnswerHead()
            var taken = 0
            let line = Array("X-A: \(String(repeating: "b", count: 1000))\r\n".utf8)
            guard head.take(Array("HTTP/1.1 200 OK\r\n".utf8)), head.take(Array("\r\n".utf8)) else {
                Issue.record("refused")
                return
            }
            while head.take(line) { taken += line.count }
            #expect(taken < AnswerHead.limit && taken > AnswerHead.limit - 2000)
        }

        @Test("no lines stop the process")
        func random() {
            let pieces = ["HTTP/1.1 ", "200", "100", " ", "\t", ":", "X", "\r\n", "\r", "\n", "\u{0}", "é", "HTTP/"]
            let random = SeededRandom(7)
            for _ in 0..<5000 {
                var head = AnswerHead()
                for _ in 0..<random.below(12) {
                    let line = (0..<random.below(6)).map { _ in pieces[random.below(pieces.count)] }.joined()
                    guard head.take(Array(line.utf8)) else { break }
                }
                #expect(head.status.map { $0 >= 100 } ?? true)
            }
        }
    }
#endif
