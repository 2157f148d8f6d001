import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests that measure the process's memory, or need much of it. They run one at a time.
@Suite(.serialized) enum Heavy {}

extension Heavy {
    /// Streamed answers, over the platform's transport from a server on this machine.
    @Suite(.serialized, .timeLimit(.minutes(15))) struct AnswerStreamTests {
        static let large = 100 * 1024 * 1024

        private func request(_ server: BulkServer, maximumAnswer: Int = 1000) -> TransportRequest {
            TransportRequest(
                method: "GET", url: "http://127.0.0.1:\(server.port)/v1/export", headers: HeaderFields(), body: [],
                deadline: .seconds(300), maximumAnswer: maximumAnswer, streamsAnswer: true)
        }

        private func registered(_ server: BulkServer) async throws -> SynheartAuth {
            let phone = Phone()
            let sdk = try phone.launch {
                $0.origins = try [RequestOrigin("http://127.0.0.1:\(server.port)")]
                $0.transport = Routing(service: phone.service, network: DefaultTransport())
            }
            try await sdk.registerDevice(appID: Phone.app)
            return sdk
        }

        @Test("a slow reader of 100 MiB slows the server down, and gets the whole answer in a few MiB of memory")
        func large() async throws {
            let server = try BulkServer(.init(length: Self.large))
            defer { server.stop() }
            let answer = try await DefaultTransport().send(request(server))
            let stream = try #require(answer.stream)
            #expect(answer.status == 200 && answer.body.isEmpty)
            let before = residentBytes()
            // The reader begins only when the server has written nothing for 200 ms.
            var (last, same) = (0, 0)
            while same < 40 {
                try await Task.sleep(for: .milliseconds(5))
                same = server.written == last && last > 0 ? same + 1 : 0
                last = server.written
            }
            #expect(last < Self.large / 2, "the slow reader does not slow the server down")
            var count = 0
            var isAsSent = true
            for try await piece in stream {
                #expect(!piece.isEmpty)
                for offset in stride(from: 0, to: piece.count, by: 1021)
                where piece[offset] != BulkServer.byte(count + offset) {
                    isAsSent = false
                }
                count += piece.count
            }
            #expect(count == Self.large && isAsSent)
            #expect(residentBytes() - before < 40 * 1024 * 1024)
        }

        @Test("send streams an answer, whatever the limit for answers in memory is")
        func send() async throws {
            let server = try BulkServer(.init(length: 200_000))
            defer { server.stop() }
            let sdk = try await registered(server)
            let stream = try #require(await sdk.send(request(server), appID: Phone.app).stream)
            var body: [UInt8] = []
            for try await piece in stream { body += piece }
            #expect(body == (0..<200_000).map(BulkServer.byte))
            #expect(server.received.count == 1)
        }

        @Test("an error answer to a request that streams is bytes, with their limit")
        func errorAnswer() async throws {
            for length in [1000, 1001] {
                let server = try BulkServer(.init(status: 500, length: length))
                defer { server.stop() }
                let sdk = try await registered(server)
                if length == 1000 {
                    let answer = try await sdk.send(request(server), appID: Phone.app)
                    #expect(answer.status == 500 && answer.stream == nil && answer.body.count == 1000)
                } else {
                    let error = await expectError(.answerTooLarge) {
                        try await sdk.send(request(server), appID: Phone.app)
                    }
                    #expect(error?.mayHaveHappened == true)
                }
            }
        }

        @Test("a transport that gives bytes to a request that streams gives the app a stream all the same")
        func bytes() async throws {
            let phone = Phone()
            let sdk = try phone.launch { $0.origins = SendTests.origins }
            try await sdk.registerDevice(appID: Phone.app)
            for (status, isStreamed) in [(200, true), (302, true), (404, false)] {
                await phone.service.answer(path: "/v1/export", with: TransportResponse(status: status, body: [1, 2]))
                let answer = try await sdk.send(
                    TransportRequest(
                        method: "GET", url: SendTests.api + "/v1/export", headers: HeaderFields(), body: [],
                        streamsAnswer: true), appID: Phone.app)
                #expect((answer.stream != nil) == isStreamed && answer.body == (isStreamed ? [] : [1, 2]))
                var body: [UInt8] = []
                if let stream = answer.stream { for try await piece in stream { body += piece } }
                #expect(body == (isStreamed ? [1, 2] : []))
            }
        }

        @Test("an answer that breaks off is NETWORK_ERROR, and the request may have taken effect")
        func broken() async throws {
            let server = try BulkServer(.init(length: 300_000, diesAfter: 200_000))
            defer { server.stop() }
            let sdk = try await registered(server)
            let stream = try #require(await sdk.send(request(server), appID: Phone.app).stream)
            let count = Locked(0)
            let error = await expectError(.networkError) {
                for try await piece in stream { count.withLock { $0 += piece.count } }
                return "the end"
            }
            #expect(error?.mayHaveHappened == true)
            #expect(count.withLock { $0 } <= 200_000)
            #expect(server.received.count == 1, "the request was sent once")
        }

        @Test("a reader that is cancelled in mid-stream gets CancellationError at once, and the connection ends")
        func cancelled() async throws {
            let server = try BulkServer(.init(length: 300_000, stallsAfter: 100_000))
            defer { server.stop() }
            let sdk = try await registered(server)
            let stream = try #require(await sdk.send(request(server), appID: Phone.app).stream)
            let count = Locked(0)
            let reader = Task { for try await piece in stream { count.withLock { $0 += piece.count } } }
            try await eventually { count.withLock { $0 } == 100_000 }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            try await eventually { server.endedByClient == 1 }
            #expect(server.received.count == 1)
        }

        @Test("a stream that is dropped ends the connection")
        func dropped() async throws {
            let server = try BulkServer(.init(length: 300_000, stallsAfter: 100_000))
            defer { server.stop() }
            let transport = DefaultTransport()
            _ = try await transport.send(request(server))
            try await eventually { server.endedByClient == 1 }
        }

        @Test("a reader that is too slow for a transport without flow control gets ANSWER_TOO_LARGE")
        func tooSlow() async throws {
            let stops = Locked(0)
            let buffer = AnswerBuffer(limit: 2 * 1024 * 1024, stop: { stops.withLock { $0 += 1 } })
            let block = [UInt8](repeating: 7, count: 65_536)
            for _ in 0..<1000 { buffer.append(block) }
            #expect(stops.withLock { $0 } == 1, "the exchange ends once")
            let stream = buffer.stream
            let count = Locked(0)
            let error = await expectError(.answerTooLarge) {
                for try await piece in stream { count.withLock { $0 += piece.count } }
                return "the end"
            }
            #expect(error?.mayHaveHappened == true && error?.isRetryable == false)
            #expect(error?.message.contains("too slow") == true)
            // The bytes that arrived before the error are read first: one MiB from memory and two from the disk.
            #expect(count.withLock { $0 } == 3 * 1024 * 1024)
        }

        @Test("a slow reader pauses the transport once until everything was read, and the disk gets its room back")
        func flow() async throws {
            let flows = Locked<[Bool]>([])
            let buffer = AnswerBuffer(
                limit: 40 * 1024 * 1024, flow: { isFlowing in flows.withLock { $0.append(isFlowing) } }
            ) {}
            let stream = buffer.stream.makeAsyncIterator()
            let block = [UInt8](repeating: 7, count: 1024 * 1024)
            for round in 1...3 {
                // In total, the three rounds append more than the buffer's limit.
                for _ in 0..<30 { buffer.append(block) }
                #expect(flows.withLock { $0.count } == 2 * round - 1)
                var rest = 30 * block.count
                while rest > 0 { rest -= try await stream.next()?.count ?? rest }
                #expect(rest == 0 && flows.withLock { $0 } == (0..<2 * round).map { $0 % 2 == 1 })
            }
            // The transport ignores the pause, and the reader is slow. The buffer frees space in between.
            for _ in 0..<20 { buffer.append(block) }
            for _ in 0..<100 {
                buffer.append(block)
                var taken = 0
                while taken < block.count { taken += try await stream.next()?.count ?? block.count }
            }
            buffer.end(nil)
            var rest = 0
            while let piece = try await stream.next() { rest += piece.count }
            #expect(rest > 0 && rest <= 20 * block.count)
        }

        @Test("single bytes become few pieces")
        func singleBytes() async throws {
            let buffer = AnswerBuffer(stop: {})
            let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
            for byte in bytes { buffer.append([byte]) }
            buffer.end(nil)
            var pieces: [[UInt8]] = []
            for try await piece in buffer.stream { pieces.append(piece) }
            #expect(Array(pieces.joined()) == bytes && pieces.count < 20)
        }

        @Test("a buffer gives back what it took, in order, from memory and from its file")
        func buffer() async throws {
            let buffer = AnswerBuffer(stop: {})
            let stream = buffer.stream.makeAsyncIterator()
            var expected: [UInt8] = []
            var got: [UInt8] = []
            for round in 0..<40 {
                let bytes = (0..<100_003).map { UInt8(truncatingIfNeeded: $0 &* (round + 3)) }
                buffer.append(bytes)
                expected += bytes
                // The buffer is emptied in between, so that memory and file are reused.
                if round % 17 == 16 { while got.count < expected.count { got += try await stream.next() ?? [] } }
            }
            buffer.end(nil)
            while let piece = try await stream.next() { got += piece }
            #expect(got == expected)
        }
    }
}

/// The resident memory of this process, in bytes; 0 where it is not measured.
func residentBytes() -> Int {
    #if os(Linux)
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4096 } ?? 0
    #else
        return 0
    #endif
}
