import AuthContract
import Crypto
import Foundation
import StrictJSON
import Testing

/// What a proxy needs: a service with a registered device, and a recording backend. Tests start proxies that use both.
struct ProxyFixture: Sendable {
    let service: RunningService
    let backend: RecordingBackend
    let device: DevelopmentDevice
    private let credential: String

    static let origin = "https://api.example.com"
    static let audience = "internal.example.com"

    /// Starts everything but the proxy.
    ///
    /// - Parameter mode: the mode of the app.
    init(in folder: TemporaryFolder, mode: String = "enforce") async throws {
        var record = try #require(JSONValue(parsing: Array(DevelopmentDevice.app.utf8)).object)
        record["mode"] = .string(mode)
        record["signature"] = .object(
            JSONObject([
                ("authorities", .array([.string(Self.origin)])), ("token_audiences", .array([.string(Self.audience)])),
            ]))
        let fixture = try await ServiceFixture(
            stores: ["--database", folder.path("db.sqlite")], app: JSONValue.object(record).text())
        credential = try await fixture.serviceCredential()
        service = try await fixture.start()
        device = try #require(await DevelopmentDevice.register(.init(), port: service.port))
        backend = try RecordingBackend()
    }

    /// Starts a proxy for requests to `origin`.
    func proxy(
        _ arguments: [String] = [], service url: String? = nil, backend backendURL: String? = nil,
        errors: FileHandle? = nil
    ) async throws -> RunningProxy {
        try await RunningProxy(
            [
                "--backend", backendURL ?? backend.url, "--service", url ?? service.publicURL, "--origin", Self.origin,
            ] + arguments, credential: credential, errors: errors)
    }

    /// A request signed under scheme 1.
    func signed(
        _ method: String = "POST", _ path: String = "/v1/pay", body: [UInt8] = Array("{\"a\":1}".utf8)
    ) throws -> WireRequest {
        try device.request(method, path, body: body, at: DevelopmentDevice.now)
    }

    /// A request signed under scheme 2.
    func signedUnderTwo(
        _ method: String = "POST", _ target: String = "/v1/pay?x=1", body: [UInt8]
    ) throws -> WireRequest {
        let parameters = try SchemeTwoParameters(
            created: DevelopmentDevice.now, nonce: RequestNonce(from: SystemRandom()),
            key: DevicePublicKey(device.key.publicKey))
        let digest = ContentDigest(of: body)
        let app = try AppID(DevelopmentDevice.appID)
        let base = try SignatureBase(
            method: method, origin: RequestOrigin(Self.origin), target: RequestTarget(target), contentDigest: digest,
            appID: app, deviceID: device.id, parameters: parameters)
        let fields = SchemeTwoHeaders(
            appID: app, deviceID: device.id, contentDigest: digest, parameters: parameters,
            signature: RequestSignature(try device.key.signature(for: base.bytes))
        ).fields
        return WireRequest(method: method, target: target, headers: fields.map { ($0.name, $0.value) }, body: body)
    }
}

/// A proxy in its own process.
final class RunningProxy: Sendable {
    let port: Int
    /// The port of the operations listener; nil if the proxy has no such listener.
    let operationsPort: Int?
    private let process: Process

    /// Starts `proxy` on a free port and waits for its ready line.
    init(_ arguments: [String], credential: String?, errors: FileHandle? = nil) async throws {
        process = Process()
        process.executableURL = Binary.url
        process.arguments = ["proxy", "--listen", "127.0.0.1:0"] + arguments
        var environment = ProcessInfo.processInfo.environment
        environment["SYNHEART_AUTH_CREDENTIAL"] = credential
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = errors ?? FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let handle = output.fileHandleForReading
        let line = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var bytes: [UInt8] = []
                while !bytes.contains(UInt8(ascii: "\n")) {
                    let more = handle.availableData
                    if more.isEmpty { break }
                    bytes += more
                }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
        let words = line.split { $0 == " " || $0 == "\n" }.map(String.init)
        func port(_ name: String, _ index: Int) -> Int? {
            guard words.count > index, words[index].hasPrefix(name + "=127.0.0.1:") else { return nil }
            return words[index].split(separator: ":").last.flatMap { Int($0) }
        }
        self.port = try #require(words.first == "ready" ? port("proxy", 1) : nil, "the proxy did not start: \(line)")
        operationsPort = port("operations", 2)
    }

    func signal(_ number: Int32) { _ = Glibc.kill(process.processIdentifier, number) }

    /// Waits for the end of the process, and returns its exit code.
    func exitCode() async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [process] in
                process.waitUntilExit()
                continuation.resume(returning: process.terminationStatus)
            }
        }
    }

    func send(_ request: WireRequest) async throws -> WireResponse {
        try #require(await WireConnection.exchange(port: port, request), "no answer")
    }

    /// The bytes of a request with other framing headers and another body.
    static func bytes(_ request: WireRequest, framing: [String], body: String) -> [UInt8] {
        let lines = request.headers.map { "\($0.0): \($0.1)" } + framing
        let head = ["\(request.method) \(request.target) HTTP/1.1", "Host: 127.0.0.1"] + lines
        return Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
    }

    deinit { if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) } }
}
