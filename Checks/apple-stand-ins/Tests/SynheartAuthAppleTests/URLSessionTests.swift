import AuthContract
import Bytes
import Foundation
import Security
import Testing

@testable import SynheartAuth

/// The transport over a URLSession of the app, compiled as for Apple's systems.
@Suite(.serialized) struct URLSessionTests {
    /// The app's delegate. It follows redirects, rejects authentication challenges, and records its callbacks in order.
    final class AppDelegate: NSObject, URLSessionDataDelegate {
        let callbacks = Locked<[String]>([])

        private func note(_ callback: String) { callbacks.withLock { $0.append(callback) } }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("data") }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("end")
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect")
            completionHandler(request)
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            note("challenge")
            completionHandler(.rejectProtectionSpace, nil)
        }
    }

    private let delegate = AppDelegate()
    private let session: URLSession

    init() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-App": "mine"]
        session = StandInSession.make(configuration, delegate: delegate)
    }

    private func send(
        _ answer: String?, limit: Int = 1000, deadline: Duration = .seconds(5), over transport: URLSessionTransport
    ) async throws -> (Result<TransportResponse, TransportError>, LocalServer) {
        let server = try LocalServer(answer)
        defer { server.stop() }
        let request = TransportRequest(
            method: "POST", url: "http://127.0.0.1:\(server.port)/", headers: HeaderFields([("X-Test", "1")]),
            body: [1, 2, 3], deadline: deadline, maximumAnswer: limit)
        do throws(TransportError) {
            return (.success(try await transport.send(request)), server)
        } catch {
            return (.failure(error), server)
        }
    }

    @Test("the app's own session sends, and its delegate does not get the answers")
    func ownSession() async throws {
        let transport = URLSessionTransport(session: session)
        let (answer, server) = try await send(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", over: transport)
        #expect(try answer.get().body == Array("hi".utf8))
        let head = try #require(server.received?.head.lowercased())
        #expect(head.contains("x-app: mine") && head.contains("x-test: 1"))
        #expect(delegate.callbacks.withLock { $0 }.isEmpty)
    }

    @Test("a redirect is returned, though the app's delegate follows them")
    func redirect() async throws {
        let (answer, _) = try await send(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            over: URLSessionTransport(session: session))
        #expect(try answer.get().status == 302)
        #expect(delegate.callbacks.withLock { $0 }.isEmpty)
    }

    @Test("a demand for a password is returned, though the app's delegate would answer it")
    func authentication() async throws {
        let (answer, _) = try await send(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n",
            over: URLSessionTransport(session: session))
        #expect(try answer.get().status == 401)
        #expect(delegate.callbacks.withLock { $0 }.isEmpty)
    }

    @Test("size and deadline hold, and the app's session outlives the transport")
    func limits() async throws {
        do {
            let transport = URLSessionTransport(session: session)
            let (large, _) = try await send(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", limit: 2, over: transport)
            #expect(throws: TransportError.tooLarge) { try large.get() }
            let (silent, _) = try await send(nil, deadline: .milliseconds(300), over: transport)
            #expect(throws: TransportError.self) { try silent.get() }
        }
        let server = try LocalServer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        defer { server.stop() }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
        session.dataTask(with: url).resume()
        // This task was not started by the transport, so the app's delegate gets its callbacks.
        try await eventually { delegate.callbacks.withLock { $0 } == ["data", "end"] }
    }
}
