import Foundation
import StrictJSON
import Testing

/// The faults that `synheart-auth conformance` detects, in proxies, nodes, gateways and backends.
@Suite(.serialized) struct ConformanceFaultTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A proxy in front of the service that does one thing wrong.
    struct Meddler: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The cases that must fail.
        let noticedBy: [String]
        var request: @Sendable (inout ProxiedRequest) -> Void = { _ in }
        var answer: @Sendable (inout ProxiedAnswer) -> Void = { _ in }
        var sendsTwice = false

        /// A proxy that changes requests.
        static func requests(
            _ what: String, _ noticedBy: [String], _ change: @escaping @Sendable (inout ProxiedRequest) -> Void
        ) -> Meddler { Meddler(testDescription: what, noticedBy: noticedBy, request: change) }

        /// A proxy that changes answers.
        static func answers(
            _ what: String, _ noticedBy: [String], _ change: @escaping @Sendable (inout ProxiedAnswer) -> Void
        ) -> Meddler { Meddler(testDescription: what, noticedBy: noticedBy, answer: change) }
    }

    static let meddlers: [Meddler] = [
        .requests("merges slashes", ["path-slashes"]) {
            while $0.target.contains("//") { $0.target = $0.target.replacing("//", with: "/") }
        },
        .requests("decodes escaped slashes", ["path-escaped-slash"]) {
            $0.target = $0.target.replacing(/%2[Ff]/, with: "/")
        },
        .requests("decodes escaped letters", ["path-escaped-letter"]) {
            $0.target = $0.target.replacing("%73", with: "s")
        },
        .requests("removes path parameters", ["path-parameter"]) {
            $0.target = $0.target.replacing(/;[^\/?]*/, with: "")
        },
        .requests("removes dot segments", ["path-dot-segments"]) {
            $0.target = $0.target.replacing(/\/x\/(\.\.|%2e%2e)\//, with: "/").replacing("/./", with: "/")
        },
        .requests("lowers the path's case", ["path-case"]) { $0.target = $0.target.lowercased() },
        .requests("removes a slash at the end", ["path-end"]) {
            if $0.target.hasSuffix("/") { $0.target.removeLast() }
        },
        .requests("drops queries", ["query-on-write", "query-kept"]) {
            $0.target = String($0.target.prefix { $0 != "?" })
        },
        .requests("rewrites bodies", ["body-unchanged"]) { $0.body.removeAll { $0 == UInt8(ascii: "\t") } },
        .requests("cuts large bodies", ["body-large"]) { $0.body = Array($0.body.prefix(50_000)) },
        .requests("drops bodies in chunks", ["body-chunked"]) {
            if $0.value("Transfer-Encoding") != nil { $0.body = [] }
        },
        .requests("drops Accept", ["error-problem"]) { $0.headers.removeAll { $0.name.lowercased() == "accept" } },
        .requests("keeps the first of two headers", ["headers-twice"]) { request in
            var names: Set<String> = []
            request.headers.removeAll { !names.insert($0.name.lowercased()).inserted }
        },
        .answers("strips the error header", ["error-form"]) { $0.headers.removeAll { $0.name == "X-Synheart-Error" } },
        .answers("strips the request id", ["answer-headers", "error-form"]) {
            $0.headers.removeAll { $0.name == "X-Request-ID" }
        },
        .answers("lets answers be cached", ["answer-headers"]) {
            $0.headers = $0.headers.map { $0.name == "Cache-Control" ? ($0.name, "max-age=60") : $0 }
        },
        .answers("shifts the service's time", ["clock", "error-form"]) {
            $0.headers = $0.headers.map { name, value in
                name == "X-Synheart-Server-Time" ? (name, String((Int64(value) ?? 0) + 3600)) : (name, value)
            }
        },
        .answers("puts a page in place of refusals", ["error-form"]) {
            if $0.status >= 400 { $0.body = Array("<html>sorry</html>".utf8) }
        },
        .answers("answers 200 to everything", ["signed-body", "replay-copy", "verify-credential"]) {
            if $0.status >= 400 { $0 = ProxiedAnswer(status: 200) }
        },
        .answers("makes challenges live for a second", ["challenge-expiry"]) {
            let text = String(decoding: $0.body, as: UTF8.self)
            $0.body = Array(text.replacing(/"ttl_seconds":[0-9]+/, with: #""ttl_seconds":1"#).utf8)
        },
        Meddler(
            testDescription: "sends each token request twice", noticedBy: ["signed-accepted", "replay-together"],
            sendsTwice: true),
    ]

    @Test func `what a proxy does wrong is noticed by a case about it`() async throws {
        let installation = try await ConformanceInstallation(in: folder)
        let port = installation.service.port
        for meddler in Self.meddlers {
            let proxy = try MeddlingProxy { request in
                var request = request
                meddler.request(&request)
                if meddler.sendsTwice, request.target == "/auth/v1/token" {
                    _ = await MeddlingProxy.pass(request, to: port)
                }
                var answer = await MeddlingProxy.pass(request, to: port)
                meddler.answer(&answer)
                return answer
            }
            let (status, results, errors) = try await installation.run(
                proxy.url, meddler.noticedBy, ["--credential-file", folder.path("credential"), "--wait", "5"])
            #expect(status == 1, "\(meddler.testDescription): \(errors)")
            for id in meddler.noticedBy {
                #expect(results[id]?["result"] == "fails", "\(meddler.testDescription): \(id): \(results)")
                #expect(results[id]?["exchanges"]?.array?.isEmpty == false)
            }
            proxy.close()
        }
    }

    @Test func `a node that accepts what the other one has accepted is noticed`() async throws {
        let installation = try await ConformanceInstallation(in: folder)
        let port = installation.service.port
        // This proxy acts like a node with its own replay store, which does not have the other node's claims.
        let forgetful = try MeddlingProxy { request in
            let answer = await MeddlingProxy.pass(request, to: port)
            return answer.status == 409 ? ProxiedAnswer(status: 200) : answer
        }
        let cases = ["nodes-replay", "nodes-replay-together"]
        let (status, results, _) = try await installation.run(
            installation.service.publicURL, cases + ["nodes-register"], ["--second-url", forgetful.url])
        #expect(status == 1)
        for id in cases { #expect(results[id]?["result"] == "fails", "\(results)") }
        #expect(results["nodes-register"]?["result"] == "holds")
        forgetful.close()
    }

    /// Faulty gateways. Each asks the service's `/auth/v1/forward` about a request that differs from the one that the client sent.
    private static let gateways:
        [(what: String, noticedBy: String, change: @Sendable (ProxiedRequest) -> ProxiedRequest)] = [
            (
                "asks without the body", "backend-attached-body",
                { request in
                    var request = request
                    request.body = []
                    return request
                }
            ),
            (
                "drops bodies in chunks", "backend-chunked-body",
                { request in
                    var request = request
                    if request.value("Transfer-Encoding") != nil { request.body = [] }
                    return request
                }
            ),
            (
                "merges slashes before it asks", "backend-slashes",
                { request in
                    var request = request
                    request.target = request.target.replacing("//", with: "/")
                    return request
                }
            ),
            (
                "drops the query before it asks", "backend-query",
                { request in
                    var request = request
                    request.target = String(request.target.prefix { $0 != "?" })
                    return request
                }
            ),
            (
                "believes the client's X-Original-URI", "backend-forged-original",
                { request in
                    var request = request
                    if let target = request.value("X-Original-URI"), let method = request.value("X-Original-Method") {
                        (request.target, request.method, request.body) = (target, method, [])
                    }
                    return request
                }
            ),
        ]

    @Test func `a gateway that asks about another request is noticed`() async throws {
        let installation = try await ConformanceInstallation(in: folder)
        for (what, id, change) in Self.gateways {
            let gateway = try installation.gateway(asking: change)
            let (status, results, errors) = try await installation.run(
                installation.service.publicURL, [id], ["--backend", gateway.url + "/v1/readings", "--backend-get"])
            #expect(status == 1, "\(what): \(errors)")
            #expect(results[id]?["result"] == "fails", "\(what): \(results)")
            gateway.close()
        }
    }

    @Test func `a backend without a gateway, and one that remembers verdicts, are noticed`() async throws {
        let installation = try await ConformanceInstallation(in: folder)
        let open = try MeddlingProxy { _ in ProxiedAnswer(status: 200) }
        let cases = ["backend-unsigned", "backend-forged-identity", "backend-replay", "backend-deregistered"]
        let (status, results, _) = try await installation.run(
            installation.service.publicURL, cases + ["backend-refusal", "backend-reached"],
            ["--backend", open.url + "/v1/readings"])
        #expect(status == 1)
        for id in cases + ["backend-refusal"] { #expect(results[id]?["result"] == "fails", "\(id): \(results)") }
        #expect(results["backend-reached"]?["result"] == "holds")
        open.close()
    }
}
