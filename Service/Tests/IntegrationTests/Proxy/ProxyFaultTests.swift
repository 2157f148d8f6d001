import AuthContract
import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

/// `synheart-auth proxy` between parties that fail, send wrong data or are slow.
@Suite struct `The proxy and its faults` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `without the auth service nothing passes`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(
            ["--operations-listen", "127.0.0.1:0"], service: "http://127.0.0.1:1")
        let answer = try await proxy.send(fixture.signed())
        #expect(answer.status == 503 && answer.code == "SERVICE_UNAVAILABLE" && answer.value("Retry-After") != nil)
        #expect(fixture.backend.seen.isEmpty)
        let operations = try #require(proxy.operationsPort)
        let ready = await WireConnection.exchange(port: operations, WireRequest(method: "GET", target: "/readyz"))
        #expect(ready?.status == 200 && ready?.json["degraded"]?.object?["auth_service"] != nil, "\(ready?.text ?? "")")
        let metrics = await WireConnection.exchange(port: operations, WireRequest(method: "GET", target: "/metrics"))
        #expect(metrics?.text.contains("synheart_proxy_requests_total{outcome=\"unavailable\"} 1") == true)
        #expect(metrics?.text.contains("synheart_proxy_requests_total{outcome=\"verified\"} 0") == true)
    }

    @Test func `the first verdict ends the outage in the readiness report, even if it is a refusal`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let port = try LoopbackPort.reserve()
        let proxy = try await fixture.proxy(
            ["--operations-listen", "127.0.0.1:0"], service: "http://127.0.0.1:\(port)")
        let operations = try #require(proxy.operationsPort)
        func outage() async throws -> JSONValue? {
            let ready = await WireConnection.exchange(port: operations, WireRequest(method: "GET", target: "/readyz"))
            return try #require(ready?.json["degraded"]?.object)["auth_service"]
        }
        #expect(try await proxy.send(fixture.signed()).status == 503)
        #expect(try await outage() != nil)
        let network = try FaultyNetwork(to: fixture.service.port, port: port)
        defer { network.close() }
        // The proxy itself refuses a malformed path. This says nothing about the service.
        #expect(try await proxy.send(WireRequest(method: "GET", target: "/a%zz")).status == 400)
        #expect(try await outage() != nil)
        var changed = try fixture.signed()
        changed.body = Array("{}".utf8)
        #expect(try await proxy.send(changed).status == 401)
        #expect(try await outage() == nil)
    }

    @Test func `a body arrives in every framing, and a body in two framings does not`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--body-limit", "1000"])
        let connection = try #require(WireConnection(port: proxy.port))
        await connection.send(
            RunningProxy.bytes(
                try fixture.signed(), framing: ["Transfer-Encoding: chunked"],
                body: "3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\nX-Trailer: 1\r\n\r\n"))
        #expect(await connection.answer()?.status == 200)
        await connection.send(
            RunningProxy.bytes(
                try fixture.signed(), framing: ["Content-Length: 7", "Expect: 100-continue"], body: ""))
        #expect(await connection.answer()?.status == 100)
        await connection.send(Array("{\"a\":1}".utf8))
        #expect(await connection.answer()?.status == 200)
        let seen = fixture.backend.seen
        #expect(seen.map(\.body) == [Array("{\"a\":1}".utf8), Array("{\"a\":1}".utf8)])
        #expect(seen.allSatisfy { $0.values("Content-Length") == ["7"] && !$0.head.contains("Expect") })

        for (framing, body, status) in [
            (["Content-Length: 7", "Content-Length: 7"], "{\"a\":1}", 400),
            (["Content-Length: 7", "Transfer-Encoding: chunked"], "7\r\n{\"a\":1}\r\n0\r\n\r\n", 400),
            (["Transfer-Encoding: gzip, chunked"], "7\r\n{\"a\":1}\r\n0\r\n\r\n", 400),
            (["Content-Length: 1001"], "", 413),
            (["Transfer-Encoding: chunked"], "3e9\r\n" + String(repeating: "x", count: 1001) + "\r\n0\r\n\r\n", 413),
            (["Content-Length: 7", "Expect: magic"], "{\"a\":1}", 400),
            (["Content-Length: 7", "Connection: X-Synheart-Signature"], "{\"a\":1}", 400),
            (["Content-Length: 7", "Connection: Upgrade", "Upgrade: websocket"], "{\"a\":1}", 501),
        ] {
            let other = try #require(WireConnection(port: proxy.port))
            await other.send(RunningProxy.bytes(try fixture.signed(), framing: framing, body: body))
            #expect(await other.answer()?.status == status, "\(framing)")
        }
        for (method, target, status) in [("TRACE", "/", 501), ("GET", "/a%zz", 400), ("GET", "http://a/b", 400)] {
            #expect(try await proxy.send(WireRequest(method: method, target: target)).status == status, "\(target)")
        }
        #expect(fixture.backend.seen.count == 2)
    }

    @Test func `a backend that is slow, away or breaks off is 504 and 502, and is asked once`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--timeout", "1"])
        fixture.backend.reply = .none
        let slow = try await proxy.send(fixture.signed())
        #expect(slow.status == 504 && slow.code == "SERVICE_UNAVAILABLE", "\(slow.text)")
        #expect(slow.json["request_id"]?.string == slow.value("X-Request-ID"))
        fixture.backend.reply = .bytes("nonsense\r\n\r\n")
        #expect(try await proxy.send(fixture.signed()).status == 502)
        #expect(fixture.backend.seen.count == 2)
        let away = try await fixture.proxy(backend: "http://127.0.0.1:1")
        #expect(try await away.send(fixture.signed()).status == 502)
    }

    @Test func `an answer passes as it is, and one that breaks off does not look complete`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--timeout", "1"])
        let connection = try #require(WireConnection(port: proxy.port))
        fixture.backend.reply = .bytes(
            "HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n"
                + "Connection: X-Hop\r\nX-Hop: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nabc")
        let found = try #require(await connection.exchange([fixture.signed()]).first)
        #expect(found.status == 302 && found.text == "abc" && found.value("Content-Encoding") == "gzip")
        #expect(found.value("Location") == "https://elsewhere.example/" && found.value("X-Hop") == nil)
        #expect(found.head.contains("Set-Cookie: a=1\r\nSet-Cookie: b=2"), "\(found.head)")
        // The answer to HEAD has no body, even if it states a length.
        for head in ["Content-Length: 100", "X-No-Length: 1"] {
            fixture.backend.reply = .bytes("HTTP/1.1 200 OK\r\n\(head)\r\n\r\n")
            let request = try fixture.signed("HEAD", body: [])
            await connection.send(request.bytes)
            let answer = await connection.head()
            #expect(answer?.hasPrefix("HTTP/1.1 200") == true, "\(answer ?? "no answer")")
        }
        fixture.backend.reply = .bytes(RecordingBackend.ok)
        #expect(await connection.exchange([try fixture.signed()]).first?.text == "ok")
        fixture.backend.reply = .bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        #expect(await connection.exchange([try fixture.signed()]).isEmpty)
    }

    @Test func `a client that goes away ends its request to the backend`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy()
        fixture.backend.reply = .none
        do {
            let connection = try #require(WireConnection(port: proxy.port))
            await connection.send(try fixture.signed().bytes)
            #expect(await fixture.backend.eventually { $0.first?.isComplete == true })
        }
        #expect(await fixture.backend.eventually { $0.first?.isAbandoned == true })
        // The proxy does not forward an incomplete request.
        do {
            let connection = try #require(WireConnection(port: proxy.port))
            await connection.send(
                RunningProxy.bytes(try fixture.signed(), framing: ["Content-Length: 7"], body: "{\"a"))
        }
        fixture.backend.reply = .bytes(RecordingBackend.ok)
        #expect(try await proxy.send(fixture.signed()).status == 200)
        #expect(fixture.backend.seen.count == 2)
    }

    @Test func `it drains, finishes what it began, and exits with 0`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--operations-listen", "127.0.0.1:0", "--drain-seconds", "2"])
        let operations = try #require(proxy.operationsPort)
        func ready() async -> Int? {
            await WireConnection.exchange(port: operations, WireRequest(method: "GET", target: "/readyz"))?.status
        }
        #expect(await ready() == 200)
        fixture.backend.reply = .late(RecordingBackend.ok, .seconds(4))
        let request = try fixture.signed()
        let answer = Task { try await proxy.send(request) }
        #expect(await fixture.backend.eventually { $0.first?.isComplete == true })
        proxy.signal(SIGTERM)
        var status = await ready()
        for _ in 0..<100 where status == 200 {
            try await Task.sleep(for: .milliseconds(10))
            status = await ready()
        }
        #expect(status == 503)
        // Until the drain ends, requests are accepted.
        fixture.backend.reply = .bytes(RecordingBackend.ok)
        let late = try await proxy.send(fixture.signed())
        #expect(late.status == 200 && late.value("Connection") == "close", "\(late.head)")
        #expect(try await answer.value.status == 200)
        #expect(await proxy.exitCode() == 0)
    }

    @Test func `the secrets of the upstream replace the client's headers, and are never logged`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let (secrets, log) = (folder.path("headers"), folder.path("log"))
        try Data("Authorization: Bearer upstream-secret\nX-Api-Key: upstream-secret\n".utf8)
            .write(to: URL(fileURLWithPath: secrets))
        try Data().write(to: URL(fileURLWithPath: log))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: secrets)
        let proxy = try await fixture.proxy(
            ["--upstream-header-file", secrets, "--log-level", "trace"],
            errors: FileHandle(forWritingTo: URL(fileURLWithPath: log)))
        var request = try fixture.signed()
        request.headers += [("authorization", "Bearer client"), ("X_Api_Key", "client")]
        #expect(try await proxy.send(request).status == 200)
        let seen = try #require(fixture.backend.seen.first)
        #expect(seen.values("Authorization") == ["Bearer upstream-secret"] && !seen.head.contains("client"))
        #expect(seen.values("X-Api-Key") == ["upstream-secret"])
        proxy.signal(SIGTERM)
        #expect(await proxy.exitCode() == 0)
        let logged = try String(contentsOfFile: log, encoding: .utf8)
        #expect(logged.contains("\"outcome\":\"verified\"") && logged.contains("has mode 644"), "\(logged)")
        #expect(!logged.contains("upstream-secret") && !logged.contains(fixture.device.id.text), "\(logged)")
    }

    @Test func `what it cannot serve safely is refused at the start`() async throws {
        let always = ["proxy", "--service", "http://127.0.0.1:1"]
        let credential = ["SYNHEART_AUTH_CREDENTIAL": "sya_test"]
        for (arguments, word) in [
            (["--listen", "0.0.0.0:0", "--backend", "http://127.0.0.1:1"], "loopback"),
            (["--listen", "0.0.0.0:0", "--backend", "http://127.0.0.1:1", "--insecure-http"], "--origin"),
            (["--listen", "127.0.0.1:0", "--backend", "http://backend.example"], "--backend"),
            (["--listen", "127.0.0.1:0", "--backend", "http://127.0.0.1:1/v1"], "--backend"),
            (["--listen", "127.0.0.1:0", "--backend", "http://127.0.0.1:1", "--origin", "x"], "--origin"),
            (
                ["--listen", "127.0.0.1:0", "--backend", "http://127.0.0.1:1", "--upstream-header-file", "/nowhere"],
                "--upstream-header-file"
            ),
        ] {
            let result = try await Binary.run(always + arguments, environment: credential)
            #expect(result.status == 2 && result.errors.contains(word), "\(arguments): \(result.errors)")
        }
        let unbracketed = try await Binary.run(
            always + ["--listen", "::1:8080", "--backend", "http://127.0.0.1:1"], environment: credential)
        #expect(unbracketed.status == 64 && unbracketed.errors.contains("--listen"), "\(unbracketed.errors)")
        let without = try await Binary.run(
            always + ["--listen", "127.0.0.1:0", "--backend", "http://127.0.0.1:1"],
            environment: ["SYNHEART_AUTH_CREDENTIAL_FILE": "/nowhere"])
        #expect(without.status == 2 && without.errors.contains("SYNHEART_AUTH_CREDENTIAL_FILE"))
    }
}
