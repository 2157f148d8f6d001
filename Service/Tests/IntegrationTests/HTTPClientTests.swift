import Foundation
import Testing

/// Widely used HTTP clients, with their default settings.
@Suite struct HTTPClients {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let body = "{\"app_id\":\"\(DevelopmentDevice.appID)\"}"

    private static func isInstalled(_ program: String) -> Bool {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return path.split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
    }

    private static func run(_ arguments: [String]) async throws -> Binary.Result {
        try await Binary.run(arguments, of: URL(fileURLWithPath: "/usr/bin/env"))
    }

    /// Over plain HTTP, this client asks for an upgrade to HTTP/2 on each connection.
    @Test(.enabled(if: isInstalled("java"), "needs a JDK"))
    func `Java's HttpClient is answered every time`() async throws {
        let source = """
            import java.net.URI;
            import java.net.http.*;
            import java.time.Duration;

            public class Client {
                public static void main(String[] arguments) throws Exception {
                    HttpClient client = HttpClient.newHttpClient();
                    for (int number = 0; number < 8; number++) {
                        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(arguments[0]))
                            .timeout(Duration.ofSeconds(10)).expectContinue(number >= 4 && number % 2 == 0);
                        request = number % 2 == 0
                            ? request.header("Content-Type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(arguments[1]))
                            : request.uri(URI.create(arguments[2])).GET();
                        System.out.print(
                            client.send(request.build(), HttpResponse.BodyHandlers.ofString()).statusCode() + " ");
                    }
                }
            }
            """
        let file = folder.path("Client.java")
        try Data(source.utf8).write(to: URL(fileURLWithPath: file))
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start()
        let result = try await Self.run([
            "java", file, "\(service.publicURL)/auth/v1/device/challenge", Self.body,
            "\(service.publicURL)/auth/v1/.well-known/jwks.json",
        ])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == String(repeating: "200 ", count: 8), "\(result.errors)")
        #expect(service.stop() == 0)
    }

    @Test(.enabled(if: isInstalled("curl"), "needs curl"))
    func `curl is told to send its body, and to go on without HTTP 2`() async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start()
        let common = [
            "curl", "-sS", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json",
            "-d", Self.body, "\(service.publicURL)/auth/v1/device/challenge",
        ]
        // Without an interim answer, curl would wait longer than its total time limit.
        let patient = try await Self.run(common + ["-H", "Expect: 100-continue", "--expect100-timeout", "60"])
        #expect(patient.output == "200", "\(patient.errors)")
        let upgrading = try await Self.run(common + ["--http2"])
        #expect(upgrading.output == "200", "\(upgrading.errors)")
        #expect(service.stop() == 0)
    }

    @Test(.enabled(if: isInstalled("curl"), "needs curl"))
    func `a client of HTTP 1.0 gets a body of unknown length without chunks`() async throws {
        let fixture = try await ProxyFixture(in: folder, mode: "observe")
        let proxy = try await fixture.proxy()
        for body in ["", "hello"] {
            let chunk = body.isEmpty ? "" : "\(body.utf8.count)\r\n\(body)\r\n"
            fixture.backend.reply = .bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)0\r\n\r\n")
            for header in ["Connection: keep-alive", "Accept: text/plain"] {
                let answer = try await Self.run([
                    "curl", "-sS", "-m", "20", "-i", "--raw", "--http1.0", "-H", header,
                    "http://127.0.0.1:\(proxy.port)/v1/pay",
                ])
                let parts = answer.output.components(separatedBy: "\r\n\r\n")
                #expect(answer.status == 0, "the connection ends: \(answer.errors)")
                #expect(parts.count == 2 && parts[0].hasPrefix("HTTP/1.0 200 "), "\(answer)")
                #expect(parts.last == body && !parts[0].lowercased().contains("chunked"), "\(answer)")
            }
        }
        // A body that breaks off must not look complete.
        fixture.backend.reply = .bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello")
        fixture.backend.endsAfterReply = true
        let broken = try await Self.run([
            "curl", "-sS", "-m", "20", "--http1.0", "http://127.0.0.1:\(proxy.port)/v1/pay",
        ])
        #expect(![0, 28].contains(broken.status), "\(broken)")
    }
}
