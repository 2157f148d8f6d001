import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// The server executes the request of one `send` at most once, unless its method or its idempotency key allows repetition.
/// The tests use real transports, and a server that counts the executions of each request.
///
/// `SYNHEART_ONCE_RUNS` is the number of sends for each transport; CI makes 3,000, `scripts/test-apple` 10,000.
@Suite(.serialized) struct OnceTests {
    static let runs = ProcessInfo.processInfo.environment["SYNHEART_ONCE_RUNS"].flatMap { Int($0) } ?? 1000

    /// The ways to make a transport.
    enum Transport: String, Sendable, CaseIterable {
        /// The SDK's default.
        case standard
        #if canImport(Darwin)
            /// The transport over a URLSession of the app, which has stored a password for the server.
            case appsSession
        #endif

        func make(_ port: UInt16) -> any HTTPTransport {
            #if canImport(Darwin)
                if self == .appsSession { return Self.appsSession(port) }
            #endif
            return DefaultTransport()
        }

        #if canImport(Darwin)
            private static func appsSession(_ port: UInt16) -> URLSessionTransport {
                let configuration = URLSessionConfiguration.default
                let space = URLProtectionSpace(
                    host: "127.0.0.1", port: Int(port), protocol: "http", realm: "test",
                    authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
                configuration.urlCredentialStorage?.setDefaultCredential(
                    URLCredential(user: "a", password: "b", persistence: .forSession), for: space)
                return URLSessionTransport(session: URLSession(configuration: configuration))
            }
        #endif
    }

    /// Sends requests for the auth service to a service in memory, and all others over the network.
    private struct Split: HTTPTransport {
        let service: FakeService
        let network: any HTTPTransport

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            if request.url.hasPrefix(FakeService.origin) { return try await service.send(request) }
            return try await network.send(request)
        }
    }

    private static let methods = ["POST", "POST", "PATCH", "PUT", "DELETE", "GET"]

    /// One run, chosen by the seed: the method, the plans, whether the request has an idempotency key, and whether the send is cancelled.
    private struct Run {
        let id: String
        let method: String
        let plans: [CountingServer.Plan]
        let isKeyed: Bool
        let isCancelled: Bool

        init(_ seed: Int) {
            let random = SeededRandom(UInt64(seed))
            id = "run-\(seed)"
            method = OnceTests.methods[random.below(OnceTests.methods.count)]
            // A hung exchange takes its whole deadline, so only a few runs have one.
            let plans = CountingServer.Plan.allCases.filter { $0 != .silent }
            self.plans = (0..<2).map { _ in random.below(100) == 0 ? .silent : plans[random.below(plans.count)] }
            isKeyed = random.below(4) == 0
            isCancelled = random.below(25) == 0
        }

        var mayRepeat: Bool { isKeyed || !["POST", "PATCH"].contains(method) }

        func request(_ port: UInt16) -> TransportRequest {
            var headers = [("X-Id", id), ("X-Plan", plans.map(\.rawValue).joined(separator: ","))]
            if isKeyed { headers.append(("Idempotency-Key", id)) }
            return TransportRequest(
                method: method, url: "http://127.0.0.1:\(port)/v1/effects", headers: HeaderFields(headers),
                body: method == "GET" || method == "DELETE" ? [] : Array("effect".utf8), deadline: .milliseconds(700))
        }
    }

    private struct Tally: Sendable {
        var answers = 0
        var uncertain = 0
        var certain = 0
        var cancelled = 0
    }

    @Test("a send makes one effect, whatever happens to connections", arguments: Transport.allCases)
    func once(transport: Transport) async throws {
        let server = try CountingServer()
        defer { server.stop() }
        let phone = Phone()
        let sdk = try phone.launch {
            $0.transport = Split(service: phone.service, network: transport.make(server.port))
            $0.origins = Set(["http://127.0.0.1:\(server.port)"].compactMap { try? RequestOrigin($0) })
            $0.sleeper = TaskSleeper()
        }
        try await sdk.registerDevice(appID: Phone.app)
        let next = Locked(0)
        let tally = Locked(Tally())
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    while true {
                        let seed = next.withLock { next in
                            next += 1
                            return next
                        }
                        guard seed <= Self.runs else { return }
                        await Self.check(Run(seed), sdk, server, tally)
                    }
                }
            }
        }
        #expect(
            server.repeatedNonces == [], "\(server.repeatedNonces.count) of \(server.arrivals) copies were repeated")
        let result = tally.withLock { $0 }
        #expect(result.answers > 0 && result.uncertain > 0 && result.certain > 0 && result.cancelled > 0, "\(result)")
    }

    private static func check(
        _ run: Run, _ sdk: SynheartAuth, _ server: CountingServer, _ tally: Locked<Tally>
    ) async {
        let send = Task { try await sdk.send(run.request(server.port), appID: Phone.app) }
        if run.isCancelled {
            try? await Task.sleep(for: .microseconds(Int.random(in: 0...4000)))
            send.cancel()
        }
        let result = await send.result
        // A copy of a cancelled send may arrive after this count.
        let executions = server.executions(of: run.id)
        let story = "\(run.id): \(run.method) \(run.plans), keyed: \(run.isKeyed), \(result)"
        if !run.mayRepeat { #expect(executions <= 1, "\(story) was executed \(executions) times") }
        switch result {
        case .success: tally.withLock { $0.answers += 1 }
        case .failure(is CancellationError):
            #expect(run.isCancelled, "\(story)")
            tally.withLock { $0.cancelled += 1 }
        case .failure(let error as SynheartAuthError) where error.mayHaveHappened:
            tally.withLock { $0.uncertain += 1 }
        case .failure(let error):
            #expect(error is SynheartAuthError, "\(story)")
            #expect(executions == 0, "\(story) happened all the same")
            tally.withLock { $0.certain += 1 }
        }
    }
}
