import AuthContract
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Testing

import class Bytes.Locked

@testable import RequestVerification
@testable import RequestVerificationHummingbird

/// The request context of an app.
private struct TestContext: VerificationRequestContext, RemoteAddressRequestContext {
    struct NoSource: RequestContextSource {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    }

    var coreContext: CoreRequestContextStorage
    var verification: VerificationAnswer?
    var remoteAddress: SocketAddress?

    typealias Source = NoSource

    init(source: NoSource) { coreContext = CoreRequestContextStorage(source: source) }
}

@Suite struct VerificationMiddlewareTests {
    private static let device = "123e4567-e89b-42d3-a456-426614174000"

    /// A middleware whose service gives this answer, and the number of requests to the service.
    private struct Played: Sendable {
        let middleware: VerificationMiddleware<TestContext>
        let asked = Locked(0)

        init(_ status: Int, _ body: [UInt8], source: RequestSource = .origin("https://api.example.com")) throws {
            var configuration = RequestVerifierConfiguration(
                service: "https://auth.example.com", credential: "sk-of-these-tests", source: source)
            configuration.bodyLimit = 8
            configuration.logger.logLevel = .critical
            let asked = asked
            middleware = VerificationMiddleware(
                try RequestVerifier(
                    configuration,
                    exchange: { _ in
                        asked.withLock { $0 += 1 }
                        return ServiceResponse(status: status, headers: HeaderFields(), body: body)
                    }, pause: { _ in }, now: { UnixTime(1) }))
        }
    }

    private static func acceptance() throws -> [UInt8] {
        VerifyResponse.verified(
            VerifiedIdentity(
                appID: try AppID("com.example.app"), deviceID: try DeviceID(device), platform: .android,
                assurance: Assurance(app: .playIntegrity, key: .tee), signatureScheme: .one, keyAgeSeconds: 1)
        ).bytes
    }

    private static func refusal() -> [UInt8] {
        ErrorBody(
            code: "NONCE_REPLAY", message: "Seen.", requestID: "r", serverTimestamp: UnixTime(1), verified: false
        ).bytes
    }

    private func request(
        _ method: HTTPRequest.Method = .post, body: String = "body", further: [(String, String)] = []
    ) throws -> Request {
        var fields = HTTPFields()
        for (name, value) in [("X-App-ID", "com.example.app"), ("X-Device-ID", Self.device)] + further {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return Request(
            head: HTTPRequest(method: method, scheme: "http", authority: "a", path: "/hello", headerFields: fields),
            body: RequestBody(buffer: ByteBuffer(string: body)))
    }

    /// The data that a route receives.
    private struct Seen: Sendable {
        let context: TestContext
        let request: Request
    }

    private func handle(
        _ played: Played, _ request: Request, _ context: TestContext? = nil
    ) async throws -> (response: Response, seen: Seen?) {
        let seen = Locked<Seen?>(nil)
        let response = try await played.middleware.handle(
            request, context: context ?? TestContext(source: TestContext.NoSource())
        ) {
            request, context in
            seen.withLock { $0 = Seen(context: context, request: request) }
            return Response(status: .ok)
        }
        return (response, seen.withLock { $0 })
    }

    @Test("an accepted request reaches the route with its identity and its body, without identity headers")
    func accepted() async throws {
        let played = try Played(200, Self.acceptance())
        let forged = try request(
            .post, further: [("X-Synheart-Verified-Device", "x"), ("X_Synheart_Identity", "y"), ("Accept", "z")])
        let seen = try #require(try await handle(played, forged).seen)
        #expect(seen.context.identity?.deviceID.text == Self.device)
        #expect(try await seen.request.body.collect(upTo: 100) == ByteBuffer(string: "body"))
        #expect(seen.request.headers.map(\.value) == ["com.example.app", Self.device, "z"])
    }

    @Test("a refused request does not reach the route, and gets the verdict")
    func refused() async throws {
        let played = try Played(409, Self.refusal())
        let (response, seen) = try await handle(played, request())
        #expect(seen == nil)
        #expect(response.status.code == 409)
        #expect(response.headers[values: try #require(HTTPField.Name("X-Synheart-Error"))] == ["NONCE_REPLAY"])
        #expect(response.body.contentLength == response.headers[.contentLength].flatMap { Int($0) })
    }

    @Test("the refusal of HEAD has the length of the body that it leaves out")
    func head() async throws {
        let (response, seen) = try await handle(try Played(409, Self.refusal()), request(.head, body: ""))
        #expect(seen == nil)
        #expect(response.body.contentLength == 0)
        #expect(try #require(response.headers[.contentLength].flatMap { Int($0) }) > 0)
    }

    @Test("without a verdict the answer is 503")
    func unavailable() async throws {
        let (response, seen) = try await handle(try Played(302, []), request())
        #expect(seen == nil)
        #expect(response.status == .serviceUnavailable)
        #expect(response.headers[.retryAfter] == "5")
    }

    @Test("in observe mode a request passes without an identity")
    func observed() async throws {
        let played = try Played(200, Array(#"{"verified":false,"observed":"KEY_EXPIRED"}"#.utf8))
        let seen = try #require(try await handle(played, request()).seen)
        #expect(seen.context.identity == nil)
        #expect(seen.context.verification == .observed(code: "KEY_EXPIRED"))
    }

    @Test("mounted twice, the service is asked once, and the body is still there")
    func twice() async throws {
        let played = try Played(200, Self.acceptance())
        let first = try #require(try await handle(played, request()).seen)
        let second = try #require(try await handle(played, first.request, first.context).seen)
        #expect(played.asked.withLock { $0 } == 1)
        #expect(second.context.identity?.deviceID.text == Self.device)
        #expect(try await second.request.body.collect(upTo: 100) == ByteBuffer(string: "body"))
    }

    @Test("a body over the limit is refused unasked, with and without a length")
    func tooLarge() async throws {
        let played = try Played(200, Self.acceptance())
        for further in [[("Content-Length", "9")], []] {
            let (response, seen) = try await handle(played, request(.post, body: "nine byte", further: further))
            #expect(seen == nil)
            #expect(response.status == .contentTooLarge)
        }
        #expect(played.asked.withLock { $0 } == 0)
    }

    @Test("only a trusted proxy names scheme and authority")
    func peers() async throws {
        let played = try Played(200, Self.acceptance(), source: .trustedProxies(["10.0.0.0/8", "unix"]))
        let forwarded = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "api.example.com")]
        let peers: [(SocketAddress?, Bool)] = [
            (try SocketAddress(ipAddress: "10.1.2.3", port: 1), true),
            (try SocketAddress(unixDomainSocketPath: "/run/proxy"), true),
            (try SocketAddress(ipAddress: "11.1.2.3", port: 1), false), (nil, false),
        ]
        for (peer, passes) in peers {
            var context = TestContext(source: TestContext.NoSource())
            context.remoteAddress = peer
            let (response, seen) = try await handle(played, request(.post, further: forwarded), context)
            #expect((seen != nil) == passes, "\(String(describing: peer))")
            #expect(passes || response.status == .misdirectedRequest)
        }
    }
}
