// The server that Backends/testing/drive.py drives.
import AuthContract
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RequestVerification
import RequestVerificationHummingbird
import StrictJSON

import class Bytes.Locked

typealias Middleware = VerificationMiddleware<VerifiedRequestContext>

/// The JSON value of the next line; nil at the end of the input.
func nextLine() throws -> JSONFields? {
    guard let line = readLine() else { return nil }
    return try JSONFields(JSONValue(parsing: line, limits: .init(bytes: 1 << 20)))
}

func say(_ answer: JSONObject) {
    FileHandle.standardOutput.write(Data(JSONValue.object(answer).bytes + [UInt8(ascii: "\n")]))
}

/// The app behind the middleware. It answers with the data that it received.
@Sendable func app(_ request: Request, _ context: VerifiedRequestContext) async throws -> Response {
    let body = try await Array(request.body.collect(upTo: 1 << 20).readableBytesView)
    let reserved = request.headers.map { $0.name.canonicalName }.filter {
        $0.contains("verified") || $0.contains("identity")
    }
    let identity = context.identity.map { identity in
        var json = VerifyResponse.verified(identity).json
        json["verified"] = nil
        json["identity_token"] = nil
        return JSONValue.object(json)
    }
    let seen = JSONObject([
        ("identity", identity ?? .null),
        ("observed", (context.verification?.observedCode).map { .string($0) } ?? .null),
        ("body", .string(Base64.standard.encode(body))), ("reserved", .array(reserved.map { .string($0) })),
    ])
    return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(bytes: JSONValue.object(seen).bytes)))
}

func configuration(_ start: JSONFields, _ name: String) throws -> RequestVerifierConfiguration {
    let instance = try start.object("instances").object(name)
    let source: RequestSource =
        if let origin = try instance.optionalString("origin") { .origin(origin) } else {
            .trustedProxies(try instance.optionalStrings("trusted_proxies") ?? [])
        }
    var configuration = RequestVerifierConfiguration(
        service: try start.string("service"), credential: try start.string("credential"), source: source)
    if let limit = try instance.optionalInteger("body_limit") { configuration.bodyLimit = Int(limit) }
    if let attempts = try instance.optionalInteger("attempts") { configuration.attempts = Int(attempts) }
    var quick = 1.0
    if case .number(let number) = try start.value("quick_timeout") { quick = number.double ?? quick }
    configuration.timeout = .seconds(name == "quick" ? quick : 20)
    return configuration
}

/// Answers the lines about tokens until the input ends.
func answerTokens() async throws {
    let clocks = Clocks()
    var verifier: TokenVerifier?
    while let question = try nextLine() {
        if try question.string("do") == "verifier" {
            var configuration = TokenVerifierConfiguration(
                issuer: try question.string("issuer"), audience: try question.string("audience"))
            configuration.keySetURL = try question.string("jwks_url")
            configuration.tokenType = try question.string("token_type")
            configuration.channels = Set(try question.optionalStrings("channels") ?? [])
            configuration.leeway = try question.integer("leeway")
            configuration.timeout = .seconds(20)
            verifier = try TokenVerifier(configuration, uptime: { clocks.uptime }, now: { clocks.now })
            say(JSONObject())
            continue
        }
        clocks.set(now: try question.integer("now"), uptime: try question.integer("monotonic"))
        let (token, given) = (try question.string("token"), verifier)
        do {
            guard let found = try await given?.verify(token) else { return }
            say(
                JSONObject([
                    ("outcome", "valid"), ("device_id", .string(found.deviceID.text)),
                    ("app_id", .string(found.appID.text)), ("channel", .string(found.channel)),
                    ("platform", .string(found.platform.rawValue)), ("assurance", .object(found.assurance.json)),
                    ("expires_at", .integer(found.expiresAt.seconds)),
                ]))
        } catch .unavailable {
            say(JSONObject([("outcome", "unavailable")]))
        } catch { say(JSONObject([("outcome", "refused")])) }
    }
}

/// The clocks that the driver sets.
final class Clocks: Sendable {
    private let seconds = Locked((now: Int64(0), uptime: Int64(0)))

    var now: UnixTime { UnixTime(seconds.withLock(\.now)) }
    var uptime: Duration { .seconds(seconds.withLock(\.uptime)) }

    func set(now: Int64, uptime: Int64) { seconds.withLock { $0 = (now, uptime) } }
}

guard let start = try nextLine() else { exit(0) }
var middlewares: [String: Middleware] = [:]
for name in try start.object("instances").names {
    middlewares[name] = Middleware(try RequestVerifier(configuration(start, name)))
}
let mounted = middlewares
let application = Application(
    responder: CallbackResponder { (request: Request, context: VerifiedRequestContext) in
        let name = String((request.head.authority ?? "").prefix { $0 != "." })
        guard let middleware = mounted[name] ?? mounted["origin"] else { return Response(status: .notFound) }
        return try await middleware.handle(request, context: context) { request, context in
            guard name == "twice" else { return try await app(request, context) }
            return try await middleware.handle(request, context: context, next: app)
        }
    }, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
    onServerRunning: { channel in say(JSONObject([("port", .integer(channel.localAddress?.port ?? 0))])) })
let server = Task.detached { try await application.run() }
try await answerTokens()
exit(0)
