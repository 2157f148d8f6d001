import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Bodies that are files: signed under scheme 2 by their digest, sent in pieces.
@Suite struct FileBodyTests {
    private let path = NSTemporaryDirectory() + "synheart-auth-body-\(UUID().uuidString)"
    /// More than one piece, but not a whole number of pieces.
    private let content = (0..<200_001).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    init() throws { try Data(content).write(to: URL(fileURLWithPath: path)) }

    private func registered(_ scheme: SignatureScheme = .two) async throws -> (Phone, SynheartAuth) {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = scheme
        }
        try await sdk.registerDevice(appID: Phone.app)
        return (phone, sdk)
    }

    private func upload(_ file: String) -> TransportRequest {
        TransportRequest(
            method: "PUT", url: "\(SendTests.api)/v1/recordings/1", headers: HeaderFields(), bodyFile: file)
    }

    @Test("a file's digest is the digest of its bytes", arguments: [0, 1, 65_535, 65_536, 65_537, 200_001])
    func digest(count: Int) async throws {
        let bytes = Array(content.prefix(count))
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        #expect(try await RequestBody.file(path).digest(TaskSleeper()) == ContentDigest(of: bytes))
    }

    @Test("send signs a file's digest and passes the file to the transport")
    func sends() async throws {
        let (phone, sdk) = try await registered()
        await phone.service.answer(path: "/v1/recordings/1", with: TransportResponse(status: 201))
        #expect(try await sdk.send(upload(path), appID: Phone.app).status == 201)
        let sent = try #require(await phone.service.requests.last)
        #expect(sent.bodyFile == path && sent.body.isEmpty)
        let headers = try SchemeTwoHeaders(sent.headers)
        #expect(headers.contentDigest == ContentDigest(of: content))
        let base = try headers.base(
            method: "PUT", origin: RequestOrigin(SendTests.api), target: RequestTarget("/v1/recordings/1"))
        let key = try #require(await phone.service.devices.first?.key)
        #expect(headers.signature.isValid(for: base.bytes, by: key))
    }

    @Test("a file under scheme 1 is SIGNING_FAILED, and nothing is sent")
    func schemeOne() async throws {
        let (phone, sdk) = try await registered(.one)
        let before = await phone.network.messages
        await expectError(.signingFailed) { try await sdk.send(upload(path), appID: Phone.app) }
        #expect(await phone.network.messages == before)
    }

    @Test("a missing file, a folder and a FIFO are SIGNING_FAILED, and nothing is sent", .timeLimit(.minutes(15)))
    func unreadable() async throws {
        let (phone, sdk) = try await registered()
        let before = await phone.network.messages
        #expect(mkfifo(path + ".fifo", 0o600) == 0)
        defer { unlink(path + ".fifo") }
        for file in [path + ".none", NSTemporaryDirectory(), path + ".fifo"] {
            await expectError(.signingFailed) { try await sdk.send(upload(file), appID: Phone.app) }
        }
        #expect(await phone.network.messages == before)
    }

    @Test("signing a URLRequest again leaves nothing of the earlier signature")
    func signedAgain() async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        try await sdk.registerDevice(appID: Phone.app)
        var request = URLRequest(url: try #require(URL(string: "\(SendTests.api)/v1/readings")))
        try await sdk.sign(&request, appID: Phone.app, asserting: true)
        #expect(request.value(forHTTPHeaderField: HeaderName.assertion) != nil)
        try await sdk.sign(&request, appID: Phone.app)
        #expect(request.value(forHTTPHeaderField: HeaderName.assertion) == nil)
        let two = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = .two
        }
        try await two.sign(&request, appID: Phone.app)
        #expect(request.value(forHTTPHeaderField: HeaderName.signatureVersion) == nil)
        #expect(request.value(forHTTPHeaderField: HeaderName.messageSignature) != nil)
    }

    @Test("a URLRequest for an upload task is signed in place")
    func urlRequest() async throws {
        let (phone, sdk) = try await registered()
        var request = URLRequest(url: try #require(URL(string: "\(SendTests.api)/v1/recordings/1?part=2")))
        request.httpMethod = "PUT"
        try await sdk.sign(&request, appID: Phone.app, bodyFile: path)
        let headers = try SchemeTwoHeaders(
            HeaderFields((request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) }))
        let base = try headers.base(
            method: "PUT", origin: RequestOrigin(SendTests.api), target: RequestTarget("/v1/recordings/1?part=2"))
        let key = try #require(await phone.service.devices.first?.key)
        #expect(headers.contentDigest == ContentDigest(of: content))
        #expect(headers.signature.isValid(for: base.bytes, by: key))
        request.httpBody = Data([1])
        let signed = request
        await expectError(.signingFailed) {
            var request = signed
            try await sdk.sign(&request, appID: Phone.app, bodyFile: path)
        }
    }

    @Test("the transport sends the file's bytes with their length")
    func transport() async throws {
        let server = try LocalServer("HTTP/1.1 204 No Content\r\n\r\n")
        defer { server.stop() }
        let answer = try await DefaultTransport().send(
            TransportRequest(
                method: "PUT", url: "http://127.0.0.1:\(server.port)/x", headers: HeaderFields([("X-Test", "1")]),
                bodyFile: path))
        #expect(answer.status == 204)
        let (head, body) = try #require(server.received)
        #expect(head.lowercased().contains("content-length: \(content.count)\r\n") && head.hasPrefix("PUT /x "))
        #expect(body == content)
    }

    #if canImport(FoundationNetworking)
        @Test("a file that grew is sent as it was when it was opened; one that shrank is an error")
        func changed() throws {
            func read(_ file: RegularFile) -> [UInt8]? {
                var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
                while let count = piece.withUnsafeMutableBytes(file.read) {
                    guard count > 0 else { return bytes }
                    bytes += piece.prefix(count)
                }
                return nil
            }
            let grown = try RegularFile(path)
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.seekToEnd()
            try file.write(contentsOf: Data([1, 2, 3]))
            #expect(read(grown) == content && grown.length == content.count)
            let shrunk = try RegularFile(path)
            try file.truncate(atOffset: 70_000)
            #expect(read(shrunk) == nil)
        }

        @Test("the request of a missing file, a folder or a FIFO is not sent", .timeLimit(.minutes(15)))
        func unopened() async throws {
            #expect(mkfifo(path + ".fifo", 0o600) == 0)
            defer { unlink(path + ".fifo") }
            let server = try LocalServer("HTTP/1.1 204 No Content\r\n\r\n")
            defer { server.stop() }
            for file in [path + ".none", NSTemporaryDirectory(), path + ".fifo"] {
                let upload = TransportRequest(
                    method: "PUT", url: "http://127.0.0.1:\(server.port)/x", headers: HeaderFields(), bodyFile: file)
                let error = await #expect(throws: TransportError.self) {
                    try await DefaultTransport().send(upload).status
                }
                #expect(error?.isUnsendable == true)
            }
            #expect(server.received == nil)
        }
    #endif

    #if os(Linux)
        /// A regular file without an end: reading all of it would take minutes.
        private static let endless = "/proc/\(getpid())/pagemap"

        private var isEndlessOpen: Bool {
            let folder = "/proc/\(getpid())/fd"
            let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return files.contains {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0)) == Self.endless
            }
        }

        @Test("a file that cannot be read to its end has no digest")
        func readError() async throws {
            // The file opens, but nothing is mapped at its first address.
            await expectError(.signingFailed) { try await RequestBody.file("/proc/self/mem").digest(TaskSleeper()) }
        }

        @Test(
            "a cancelled caller ends its wait for a file's digest, and the reading", .timeLimit(.minutes(15)),
            .enabled(if: FileManager.default.isReadableFile(atPath: endless)))
        func cancelled() async throws {
            let digest = Task { try await RequestBody.file(Self.endless).digest(TaskSleeper()) }
            try await eventually { isEndlessOpen }
            digest.cancel()
            await expectError(.cancelled) { try await digest.value }
            try await eventually { !isEndlessOpen }
        }
    #endif
}
