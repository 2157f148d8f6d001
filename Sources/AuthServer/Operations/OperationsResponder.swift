internal import AuthContract
internal import AuthService
internal import Hummingbird
internal import StrictJSON

/// Answers the operations listener: whether the process lives and whether it can work.
struct OperationsResponder: HTTPResponder {
    typealias Context = ConnectionContext

    let service: AuthService
    let random: any RandomSource
    let readiness: Readiness

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        let frame = AnswerFrame(
            requestID: RandomUUID(from: random).text, now: service.clock.now, prefersProblem: false)
        guard request.method == .get else { return frame.response(frame.answer(Refusal(.methodNotAllowed, "not GET"))) }
        switch request.uri.path {
        case "/healthz": return frame.response(.json(["status": "ok"]))
        case "/readyz":
            let failures = await readiness.failures()
            var answer = Answer.json(
                .object(
                    JSONObject([
                        ("status", .string(failures.isEmpty ? "ready" : "not ready")),
                        ("failures", .object(JSONObject(failures.map { ($0.name, .string($0.reason)) }))),
                    ])))
            answer.status = failures.isEmpty ? 200 : 503
            return frame.response(answer)
        default: return frame.response(frame.answer(Refusal(.notFound, "no such path")))
        }
    }
}

/// What must work for the service to answer, each by name.
public struct Readiness: Sendable {
    /// One thing that is asked.
    public struct Check: Sendable {
        let name: String
        let ask: @Sendable () async throws -> Void

        /// A check that throws where the thing does not work.
        public init(_ name: String, _ ask: @escaping @Sendable () async throws -> Void) {
            self.name = name
            self.ask = ask
        }
    }

    private let checks: [Check]

    /// Readiness of these.
    public init(_ checks: [Check]) { self.checks = checks }

    func failures() async -> [(name: String, reason: String)] {
        var failures: [(String, String)] = []
        for check in checks {
            do { try await check.ask() } catch { failures.append((check.name, "\(error)")) }
        }
        return failures
    }
}
