import AuthContract
import HTTPTypes
import Logging
import StrictJSON
import Testing

import class Bytes.Locked

@testable import RequestVerification

@Suite struct RequestVerifierTests {
    private let good = RequestVerifierConfiguration(
        service: "https://auth.example.com", credential: BackendVectors.credential,
        source: .origin("https://api.example.com"))

    private func verifier(
        _ configuration: RequestVerifierConfiguration, _ exchange: @escaping RequestVerifier.Exchange
    ) throws -> RequestVerifier {
        var configuration = configuration
        configuration.logger.logLevel = .critical
        return try RequestVerifier(configuration, exchange: exchange, pause: { _ in }, now: { UnixTime(1) })
    }

    @Test("a configuration that cannot work is refused, without its credential in the text")
    func configurations() throws {
        _ = try RequestVerifier(good)
        let changes: [@Sendable (inout RequestVerifierConfiguration) -> Void] = [
            { $0.source = .origin("api.example.com") }, { $0.source = .origin("https://api.example.com/") },
            { $0.source = .origin("https://a@b") }, { $0.source = .trustedProxies([]) },
            { $0.source = .trustedProxies(["*"]) }, { $0.source = .trustedProxies(["10.0.0.0/33"]) },
            { $0.source = .trustedProxies(["10.0.0.0/+8"]) }, { $0.source = .trustedProxies(["10.0.0.0/"]) },
            { $0.bodyLimit = -1 }, { $0.attempts = 0 }, { $0.timeout = .zero }, { $0.connections = 0 },
            { $0.identityAudience = "" }, { $0.credential = "" }, { $0.credential += "\n" },
            { $0.credential += " x" }, { $0.service = "http://auth:8080" }, { $0.service = "auth.example.com" },
            { $0.service = "ftp://a" }, { $0.service = "https://" }, { $0.service = "https://a/auth" },
            { $0.service = "https://a?x" }, { $0.service = "https://a@b" }, { $0.service = "" },
        ]
        for (index, change) in changes.enumerated() {
            var configuration = good
            change(&configuration)
            let error = #expect(throws: VerifierConfigurationError.self, "change \(index)") {
                try RequestVerifier(configuration)
            }
            #expect(error?.description.contains(BackendVectors.credential) == false)
        }
        for service in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080", "https://a/"] {
            var configuration = good
            configuration.service = service
            _ = try RequestVerifier(configuration)
        }
        var plain = good
        plain.service = "http://auth:8080"
        plain.allowsPlainHTTP = true
        _ = try RequestVerifier(plain)
    }

    @Test("a configuration of tokens that cannot work is refused")
    func tokenConfigurations() throws {
        let good = TokenVerifierConfiguration(issuer: "https://auth.example.com", audience: "com.example.backend")
        _ = try TokenVerifier(good)
        let changes: [@Sendable (inout TokenVerifierConfiguration) -> Void] = [
            { $0.issuer = "" }, { $0.issuer = "synheart-auth" }, { $0.audience = "" }, { $0.tokenType = "" },
            { $0.channels = [] }, { $0.leeway = -1 }, { $0.leeway = 61 }, { $0.timeout = .zero },
            { $0.keySetURL = "http://auth:8080/keys" }, { $0.keySetURL = "https://a@b/keys" },
        ]
        for (index, change) in changes.enumerated() {
            var configuration = good
            change(&configuration)
            #expect(throws: VerifierConfigurationError.self, "change \(index)") { try TokenVerifier(configuration) }
        }
        var plain = good
        plain.issuer = "synheart-auth"
        plain.keySetURL = "http://auth:8080/keys"
        plain.allowsPlainHTTP = true
        _ = try TokenVerifier(plain)
    }

    @Test("no description and no dump shows the credential")
    func hidden() throws {
        let verifier = try RequestVerifier(good)
        var text = "\(good) \(String(reflecting: good)) \(verifier)"
        dump(good, to: &text)
        // Deeper levels belong to other libraries.
        dump(verifier, to: &text, maxDepth: 2)
        #expect(!text.contains(BackendVectors.credential))
    }

    @Test("only a trusted proxy names scheme and authority")
    func peers() async throws {
        var configuration = good
        configuration.source = .trustedProxies(["10.0.0.0/8", "fd00::/8", "192.0.2.7", "unix"])
        let verifier = try verifier(configuration) { _ in try BackendVectors.acceptance() }
        var request = BackendVectors.request()
        request.headers.lines += [.init("X-Forwarded-Proto", "https"), .init("X-Forwarded-Host", "api.example.com")]
        let peers: [(ReceivedRequest.Peer, Bool)] = [
            (.address("10.1.2.3"), true), (.address("::ffff:10.1.2.3"), true), (.address("fd00::1"), true),
            (.address("fd00::1%eth0"), true), (.address("192.0.2.7"), true), (.unixSocket, true),
            (.address("192.0.2.8"), false), (.address("11.1.2.3"), false), (.address("::1"), false),
            (.address("10.1.2.3, 1.2.3.4"), false), (.address(""), false), (.unknown, false),
        ]
        for (peer, passes) in peers {
            request.peer = peer
            let answer = await verifier.verify(request)
            #expect((answer.refusal == nil) == passes, "\(peer)")
            #expect(passes || answer.refusal?.status == 421, "\(peer)")
        }
    }

    @Test("a question is asked again with pauses that grow, and with the same bytes")
    func retries() async throws {
        let (questions, pauses) = (Locked<[[UInt8]?]>([]), Locked<[Duration]>([]))
        var configuration = good
        configuration.attempts = 4
        configuration.logger.logLevel = .critical
        let verifier = try RequestVerifier(
            configuration,
            exchange: { request in
                questions.withLock { $0.append(request.body) }
                throw CancellationError()
            }, pause: { pause in pauses.withLock { $0.append(pause) } }, now: { UnixTime(1) })
        let answer = await verifier.verify(BackendVectors.request())
        #expect(answer.refusal?.status == 503)
        #expect(answer.refusal?.headers.values("Retry-After") == ["5"])
        #expect(pauses.withLock { $0 } == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        #expect(questions.withLock { $0.count } == 4)
        #expect(questions.withLock { Set($0).count } == 1)
    }

    @Test("a caller that leaves ends the question")
    func cancellation() async throws {
        let questions = Locked(0)
        let verifier = try verifier(good) { _ in
            questions.withLock { $0 += 1 }
            try await Task.sleep(for: .seconds(3600))
            throw CancellationError()
        }
        let task = Task { await verifier.verify(BackendVectors.request()) }
        task.cancel()
        #expect(await task.value.refusal?.status == 503)
        #expect(questions.withLock { $0 } <= 1)
    }

    @Test("only what concerns every request is an outage")
    func outages() async throws {
        let answers: [(status: Int, body: String, isOutage: Bool)] = [
            (500, "", true), (503, "{}", true), (200, "{}", true), (302, "", true),
            (401, #"{"error":"UNAUTHORIZED"}"#, true), (403, #"{"error":"FORBIDDEN"}"#, false),
            (429, #"{"error":"RATE_LIMITED"}"#, false), (413, "", false),
        ]
        for (status, body, isOutage) in answers {
            let verifier = try verifier(good) { _ in
                ServiceResponse(status: status, headers: HeaderFields(), body: Array(body.utf8))
            }
            guard case .unavailable(let refusal, _) = await verifier.verify(BackendVectors.request()) else {
                Issue.record("\(status)")
                continue
            }
            #expect(refusal.isOutage == isOutage, "\(status)")
        }
        let verifier = try verifier(good) { _ in throw CancellationError() }
        #expect(await verifier.verify(BackendVectors.request()).refusal?.isOutage == true)
    }

    @Test("an accepting answer without the requested identity token is not accepted")
    func identityTokens() async throws {
        var configuration = good
        configuration.identityAudience = "https://llm.example.com"
        let asked = Locked<[UInt8]?>(nil)
        let tokens: [(String?, Bool)] = [
            ("eyJhbGci.eyJpc3Mi.c2ln", true), (nil, false), ("", false), ("eyJhbGci.eyJpc3Mi", false),
            ("eyJhbGci.eyJpc3Mi.", false), ("eyJhbGci.eyJpc3Mi.c2ln\r\nX: y", false),
        ]
        for (token, passes) in tokens {
            let verifier = try verifier(configuration) { request in
                asked.withLock { $0 = request.body }
                return try BackendVectors.acceptance(identityToken: token)
            }
            let answer = await verifier.verify(BackendVectors.request())
            #expect(answer.identity?.identityToken == (passes ? token : nil))
            #expect((answer.refusal == nil) == passes)
        }
        let question = try VerifyRequest(parsing: try #require(asked.withLock { $0 }))
        #expect(question.identityAudience == "https://llm.example.com")
    }

    @Test("each concurrent request gets its own answer")
    func concurrency() async throws {
        let verifier = try verifier(good) { request in
            let question = try VerifyRequest(parsing: request.body ?? [])
            for _ in 0..<Int.random(in: 0..<20) { await Task.yield() }
            return try BackendVectors.acceptance(device: question.headers.one("X-Device-ID"))
        }
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<200 {
                group.addTask {
                    let digits = String(index)
                    let device = BackendVectors.device.dropLast(digits.count) + digits
                    let answer = await verifier.verify(BackendVectors.request(device: String(device)))
                    #expect(answer.identity?.deviceID.text == String(device))
                }
            }
        }
    }

    @Test("the code that observe mode passed is kept, also one of a newer service")
    func observed() async throws {
        let verifier = try verifier(good) { _ in
            ServiceResponse(
                status: 200, headers: HeaderFields(),
                body: Array(#"{"verified":false,"observed":"SOMETHING_NEW"}"#.utf8))
        }
        let answer = await verifier.verify(BackendVectors.request())
        #expect(answer == .observed(code: "SOMETHING_NEW"))
        #expect(answer.observedCode == "SOMETHING_NEW")
        #expect(answer.identity == nil && answer.refusal == nil)
    }

    @Test("a name that a server could read as the identity's is reserved")
    func reserved() {
        for name in [
            "X-Synheart-Identity", "x_synheart_identity", "X.Synheart.Verified.Device", "X-Synheart-Verified.Device",
            "X~Synheart-Identity", "X-SYNHEART-VERIFIED-",
        ] {
            #expect(IdentityHeader.isReserved(name), "\(name)")
        }
        for name in ["X-Synheart-Identity2", "X-Synheart-Signature", "XSynheart-Identity", "X-Synheart-Verified", ""] {
            #expect(!IdentityHeader.isReserved(name), "\(name)")
        }
    }

    @Test("types of swift-http-types become requests, and refusals become their responses")
    func httpTypes() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: try #require(HTTPField.Name("X-App-ID")), value: "a"))
        fields.append(HTTPField(name: try #require(HTTPField.Name("X-App-ID")), value: "b"))
        fields.append(HTTPField(name: try #require(HTTPField.Name("X-Synheart-Verified-App")), value: "c"))
        let head = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "//x?", headerFields: fields)
        let request = ReceivedRequest(head, body: .bytes([1]))
        #expect(request.method == "PUT")
        #expect(request.target == "//x?")
        #expect(request.headers.values("x-app-id") == ["a", "b"])
        fields.removeIdentityHeaders()
        #expect(fields.map(\.value) == ["a", "b"])
        let refusal = RefusalAnswer(
            status: 502, code: .serviceUnavailable, message: "Later.", requestID: "r", retryAfter: 3)
        #expect(refusal.head.status.code == 502)
        #expect(refusal.head.headerFields[.contentLength] == String(refusal.body.count))
        #expect(refusal.head.headerFields[.retryAfter] == "3")
        #expect(try ErrorBody(parsing: refusal.body).message == "Later.")
    }
}
