import AuthContract
import Bytes
import Crypto
import Foundation
import Testing

@testable import SynheartAuth

/// Bodies from a source: read once for their digest and once for each copy, over URLSession to a server on this machine.
@Suite(.serialized, .timeLimit(.minutes(15))) struct BodySourceTests {
    private static let large = 100 * 1024 * 1024

    /// Bytes that are made when they are read. Each opening may have its own.
    private final class MadeUp: InputStream {
        private let length: Int
        private let seed: UInt8
        private var given = 0

        init(length: Int, seed: UInt8 = 0) {
            (self.length, self.seed) = (length, seed)
            super.init(data: Data())
        }

        override func open() {}
        override func close() {}
        override var streamStatus: Stream.Status { .notOpen }
        override var hasBytesAvailable: Bool { given < length }
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
            let count = min(maxLength, length - given)
            memset(buffer, Int32(UInt8(truncatingIfNeeded: given >> 16) ^ seed), count)
            given += count
            return count
        }
    }

    private func registered(
        _ server: BulkServer?, _ scheme: SignatureScheme = .two
    ) async throws -> (Phone, SynheartAuth) {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            if let server { try $0.origins.insert(RequestOrigin("http://127.0.0.1:\(server.port)")) }
            $0.scheme = scheme
            $0.transport = Routing(service: phone.service, network: URLSessionTransport())
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
        #expect(try await sdk.send(upload(server, source), appID: Phone.app).status == 200)
        let received = try #require(server.received.first)
        #expect(received.isWhole && received.count == length && received.digest == Array(SHA256.hash(data: bytes)))
        #expect(received.head.contains(ContentDigest(of: bytes).field))
    }

    @Test(
        "a source that gives other bytes the second time sends no whole request, and the error says that something left",
        arguments: [(200_001, 1), (199_999, 0), (200_002, 0), (200_000, 1)] as [(Int, UInt8)])
    func changed(length: Int, seed: UInt8) async throws {
        let server = try BulkServer()
        defer { server.stop() }
        let (_, sdk) = try await registered(server)
        let opened = Locked(0)
        let source = BodySource {
            let isFirst = opened.withLock { opened in
                opened += 1
                return opened == 1
            }
            return isFirst ? MadeUp(length: 200_001) : MadeUp(length: length, seed: seed)
        }
        let error = await expectError(.signingFailed) {
            try await sdk.send(upload(server, source), appID: Phone.app).status
        }
        #expect(error?.mayHaveHappened == true && error?.message.contains("other bytes") == true)
        try await eventually { server.received.count == 1 }
        #expect(server.received.allSatisfy { !$0.isWhole } && opened.withLock { $0 } == 2)
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
        await expectError(.signingFailed) { try await sdk.send(upload(server, unreadable), appID: Phone.app).status }
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
        let server = try BulkServer()
        defer { server.stop() }
        let (_, sdk) = try await registered(server)
        // Only what is read for the digest has an end.
        let opened = Locked(0)
        let source = BodySource {
            let isFirst = opened.withLock { opened in
                opened += 1
                return opened == 1
            }
            return MadeUp(length: isFirst ? 1000 : 1 << 40)
        }
        let send = Task { try await sdk.send(upload(server, source), appID: Phone.app).status }
        try await eventually { server.arrived > 200_000 }
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
        try await eventually { server.received.count == 1 }
        #expect(server.received.allSatisfy { !$0.isWhole })
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
        await phone.service.answer(path: path, with: TransportAnswer(status: 201))
        let request = TransportRequest(
            method: "PUT", url: SendTests.api + path, headers: HeaderFields(), bodySource: source)
        #expect(try await sdk.send(request, appID: Phone.app).status == 201)
        let copies = await phone.service.requests.filter { $0.url.hasSuffix(path) }
        #expect(copies.count == 2 && opened.withLock { $0 } == 1)
        #expect(Set(copies.map { $0.headers.values("Content-Digest") }).count == 1)
        // What a transport opens is checked, and opens once.
        let copy = try #require(copies.last?.bodySource)
        let stream = try copy.open()
        stream.open()
        var piece = [UInt8](repeating: 0, count: 1000)
        #expect(stream.read(&piece, maxLength: piece.count) == -1)
        #expect(throws: (any Error).self) { try copy.open() }
    }
}
