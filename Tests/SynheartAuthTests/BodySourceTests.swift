import AuthContract
import Bytes
import Crypto
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension Heavy {
    /// Bodies from a source: read once for their digest, and once for each copy that the transport sends to a server on this machine.
    @Suite(.serialized, .timeLimit(.minutes(15))) struct BodySourceTests {
        private static let large = 100 * 1024 * 1024

        private func registered(
            _ server: BulkServer?, _ scheme: SignatureScheme = .two
        ) async throws -> (Phone, SynheartAuth) {
            let phone = Phone()
            let sdk = try phone.launch {
                $0.origins = SendTests.origins
                if let server { try $0.origins.insert(RequestOrigin("http://127.0.0.1:\(server.port)")) }
                $0.scheme = scheme
                $0.transport = Routing(service: phone.service, network: DefaultTransport())
            }
            try await sdk.registerDevice(appID: Phone.app)
            return (phone, sdk)
        }

        private func upload(_ server: BulkServer, _ source: BodySource, method: String = "PUT") -> TransportRequest {
            TransportRequest(
                method: method, url: "http://127.0.0.1:\(server.port)/v1/recordings/1", headers: HeaderFields(),
                bodySource: source, deadline: .seconds(300))
        }

        @Test("a body of 100 MiB is signed by its digest and sent, in a few MiB of memory, and arrives once")
        func large() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let (_, sdk) = try await registered(server)
            let opened = Locked(0)
            let before = residentBytes()
            let source = BodySource {
                opened.withLock { $0 += 1 }
                return MadeUp(length: Self.large)
            }
            #expect(try await sdk.send(upload(server, source), appID: Phone.app).status == 200)
            #expect(residentBytes() - before < 40 * 1024 * 1024)
            let received = try #require(server.received.first)
            #expect(server.received.count == 1 && received.isWhole && received.count == Self.large)
            #expect(received.head.contains(try ContentDigest(sha256: received.digest).field), "what was signed arrived")
            #expect(opened.withLock { $0 } == 2)
        }

        @Test("a body of any length arrives as it is", arguments: [0, 1, 65_535, 65_536, 65_537, 200_001])
        func lengths(length: Int) async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let (_, sdk) = try await registered(server)
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let source = BodySource { InputStream(data: Data(bytes)) }
            #expect(try await sdk.send(upload(server, source, method: "POST"), appID: Phone.app).status == 200)
            let received = try #require(server.received.first)
            #expect(received.isWhole && received.count == length && received.digest == Array(SHA256.hash(data: bytes)))
            #expect(received.head.contains(ContentDigest(of: bytes).field))
            let head = received.head.lowercased()
            #expect(head.contains("content-length: \(length)\r\n") && !head.contains("transfer-encoding"))
            #expect(!head.contains("content-type"))
        }

        @Test(
            "a source that gives other bytes the second time sends nothing",
            arguments: [(200_001, 1), (199_999, 0), (200_002, 0), (200_000, 1), (1 << 40, 0)] as [(Int, UInt8)])
        func changed(length: Int, seed: UInt8) async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let (_, sdk) = try await registered(server)
            let opened = Locked(0)
            let source = BodySource(opened) {
                $0 == 1 ? MadeUp(length: 200_001) : MadeUp(length: length, seed: seed)
            }
            let error = await expectError(.signingFailed) {
                try await sdk.send(upload(server, source), appID: Phone.app).status
            }
            #expect(error?.mayHaveHappened == false && error?.message.contains("other bytes") == true)
            #expect(server.received.isEmpty && opened.withLock { $0 } == 2)
        }

        @Test("a source that cannot be opened, or fails while it is read, sends nothing: SIGNING_FAILED")
        func unreadable() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let (_, sdk) = try await registered(server)
            let none = NSTemporaryDirectory() + UUID().uuidString
            for opensFirst in [false, true] {
                let opened = Locked(0)
                let source = BodySource {
                    let isFirst = opened.withLock { opened in
                        opened += 1
                        return opened == 1
                    }
                    guard opensFirst, isFirst else { throw StorageError("no such body") }
                    return MadeUp(length: 100)
                }
                let error = await expectError(.signingFailed) {
                    try await sdk.send(upload(server, source), appID: Phone.app).status
                }
                #expect(error?.mayHaveHappened == false)
            }
            let unreadable = BodySource { try #require(InputStream(fileAtPath: none)) }
            await expectError(.signingFailed) {
                try await sdk.send(upload(server, unreadable), appID: Phone.app).status
            }
            #expect(server.received.isEmpty)
        }

        @Test("a source under scheme 1, or with GET, is SIGNING_FAILED, and nothing is sent")
        func refused() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let source = BodySource { MadeUp(length: 10) }
            for (scheme, method) in [(SignatureScheme.one, "PUT"), (.two, "GET")] {
                let (_, sdk) = try await registered(server, scheme)
                let error = await expectError(.signingFailed) {
                    try await sdk.send(upload(server, source, method: method), appID: Phone.app).status
                }
                #expect(error?.mayHaveHappened == false)
            }
            #expect(server.received.isEmpty)
        }

        @Test("a caller that is cancelled while the body leaves gets CancellationError, and no whole request arrives")
        func cancelled() async throws {
            let server = try BulkServer(.init(readsSlowly: true))
            defer { server.stop() }
            let (_, sdk) = try await registered(server)
            let source = BodySource { MadeUp(length: 20 * 1024 * 1024) }
            let send = Task { try await sdk.send(upload(server, source), appID: Phone.app).status }
            try await eventually { server.arrived > 200_000 }
            send.cancel()
            await #expect(throws: CancellationError.self) { try await send.value }
            server.hurry()
            try await eventually { server.received.count == 1 }
            #expect(server.received.allSatisfy { !$0.isWhole })
        }

        @Test("uploads that end early, at any moment, end alone: the process and other uploads go on")
        func endedAnywhere() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let file = NSTemporaryDirectory() + "synheart-auth-body-\(UUID().uuidString)"
            try Data(count: Self.large / 5).write(to: URL(fileURLWithPath: file))
            defer { unlink(file) }
            let upload = TransportRequest(
                method: "PUT", url: "http://127.0.0.1:\(server.port)/x", headers: HeaderFields(), bodyFile: file)
            let transport = DefaultTransport()
            for number in 0..<400 {
                let mark = server.arrived
                let send = Task { try await transport.send(upload).status }
                // Cancel at different moments: from the start of the connection to a few MB later.
                let enough = mark + number % 40 * 65_536
                if number % 4 > 0 { try await eventually { server.arrived > enough } }
                send.cancel()
                _ = await send.result
            }
            #expect(try await transport.send(upload).status == 200)
            #expect(try #require(server.received.last { $0.isWhole }).count == Self.large / 5)
        }

        @Test("a request that is signed again sends the same body: the source is not read for another digest")
        func signedAgain() async throws {
            let phone = Phone()
            let sdk = try phone.launch {
                $0.origins = SendTests.origins
                $0.scheme = .two
            }
            try await sdk.registerDevice(appID: Phone.app)
            let opened = Locked<UInt8>(0)
            let source = BodySource {
                MadeUp(
                    length: 100,
                    seed: opened.withLock { opened in
                        opened += 1
                        return opened
                    })
            }
            let path = "/v1/recordings/1"
            await phone.service.answer(path: path, with: await phone.service.answer(FakeService.Refusal(.nonceReplay)))
            await phone.service.answer(path: path, with: TransportResponse(status: 201))
            let request = TransportRequest(
                method: "PUT", url: SendTests.api + path, headers: HeaderFields(), bodySource: source)
            #expect(try await sdk.send(request, appID: Phone.app).status == 201)
            let copies = await phone.service.requests.filter { $0.url.hasSuffix(path) }
            #expect(copies.count == 2 && opened.withLock { $0 } == 1)
            #expect(Set(copies.map { $0.headers.values("Content-Digest") }).count == 1)
            // A copy's body can be opened only once, and its bytes must have the signed digest. The first opening fails, because the app's
            // source now gives other bytes. The second opening does not reach the app's source.
            let copy = try #require(copies.last?.bodySource)
            #expect(copy.length == 100)
            for _ in 0..<2 {
                await #expect(throws: UnreadableBody.self) { try await copy.open().streamStatus }
            }
            #expect(opened.withLock { $0 } == 2)
        }

        @Test("the temporary files of bodies are gone with them")
        func leavesNothing() async throws {
            func files() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: NSTemporaryDirectory())
                    .count { $0.hasPrefix("synheart-auth-body-") && $0.count == "synheart-auth-body-XXXXXX".count }
            }
            var body: SentBody? = try await SentBody.make(BodySource { MadeUp(length: 100_000) }, within: .seconds(30))
            #expect(try files() > 0 && body != nil)
            body = nil
            try await eventually { try files() == 0 }
        }

        @Test("sources that hang when they are opened end at the deadline, send nothing, and leave Swift's pool free")
        func hangsOpening() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let gate = Gate()
            gate.shut()
            defer { gate.open() }
            let hanging = BodySource {
                gate.pass()
                return MadeUp(length: 10)
            }
            await checkDeadlines(server, hanging)
            #expect(server.received.isEmpty)
        }

        @Test("sources that hang in their middle end at the deadline, send nothing, and leave Swift's pool free")
        func hangsReading() async throws {
            let server = try BulkServer()
            defer { server.stop() }
            let gate = Gate()
            gate.shut()
            await checkDeadlines(server, BodySource { GatedBody(gate, before: 200_000) })
            gate.open()
            try await eventually { BodyPump.threads.busy == 0 }
            #expect(server.received.isEmpty)
        }

        /// Makes eight sends of a body that hangs, and expects that each of them ends at its deadline.
        private func checkDeadlines(_ server: BulkServer, _ source: BodySource) async {
            let request = TransportRequest(
                method: "PUT", url: "http://127.0.0.1:\(server.port)/v1/recordings/1", headers: HeaderFields(),
                bodySource: source, deadline: .milliseconds(500))
            let start = ContinuousClock.now
            let sends = (0..<8).map { _ in Task { try await DefaultTransport().send(request) } }
            for send in sends { await #expect(throws: TransportError.self) { try await send.value } }
            #expect(start.duration(to: .now) < .seconds(20))
        }

        #if canImport(Darwin)
            @Test("a task is cancelled before its caller goes on, and keeps its body until it is over")
            func keepsBody() async throws {
                let server = try LocalServer(nil)
                defer { server.stop() }
                // The session has no delegate, so that `exchanges` gets only the callback that this test calls.
                let configuration = URLSessionConfiguration.ephemeral
                let session = URLSession(configuration: configuration)
                let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
                for round in 0..<100 {
                    let exchanges = URLSessionExchanges()
                    let task = session.dataTask(with: url)
                    var body: BodySource? = BodySource { MadeUp(length: 10) }
                    weak let kept = body
                    let exchange = Task { [body] in
                        try await exchanges.run(task, limit: 10, deadline: .seconds(30), streams: false, body: body)
                    }
                    body = nil
                    if round % 2 == 0 { try await eventually { task.state == .running } }
                    exchange.cancel()
                    await #expect(throws: TransportError.self) { try await exchange.value }
                    #expect(task.state == .canceling || task.state == .completed)
                    #expect(kept != nil)
                    exchanges.urlSession(session, task: task, didCompleteWithError: nil)
                    #expect(kept == nil)
                }
                session.invalidateAndCancel()
            }
        #endif
    }
}
