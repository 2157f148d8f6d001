import AuthContract
import AuthServer
import AuthService
import StrictJSON
import SynheartAuth

/// Administration through a running service's operations listener.
struct RemoteService: Administration {
    private let origin: RequestOrigin
    private let credential: Secret
    /// The transport lasts as long as the process.
    private static let transport = PooledTransport(concurrency: 8)

    private static let maximumAnswer = 64 << 20
    /// The deadline of a call. The slowest call verifies a long audit log event by event.
    private static let deadline: Duration = .seconds(60)

    /// The service at this address. A connection to another machine must be encrypted, because it carries the credential.
    init(url: String, credential: Secret) throws {
        self.credential = credential
        do {
            origin = try RequestOrigin(url.hasSuffix("/") ? String(url.dropLast()) : url)
        } catch {
            throw CommandFailure(.impossible, "--url is such as http://127.0.0.1:9464: \(error)")
        }
        guard origin.isSecure else {
            throw CommandFailure(
                .impossible,
                "\(origin) is not this machine, and the credential would cross the network in the clear: "
                    + "use https, or a tunnel to a loopback address")
        }
    }

    func answer(_ call: AdminCall) async throws -> AdminResponse {
        let body = call.body.map { JSONValue.object($0).bytes } ?? []
        var headers = [("Authorization", "Bearer \(credential.exposed)")]
        if !body.isEmpty { headers.append(("Content-Type", "application/json")) }
        if let tag = call.ifMatch { headers.append(("If-Match", tag)) }
        let request = TransportRequest(
            method: call.route.method, url: origin.description + call.target, headers: HeaderFields(headers),
            body: body,
            deadline: Self.deadline, maximumAnswer: Self.maximumAnswer)
        let answer: TransportResponse
        do { answer = try await Self.transport.send(request) } catch {
            throw CommandFailure(.impossible, "cannot reach \(origin): \(error)")
        }
        guard answer.status < 300 || answer.status >= 400 else {
            throw CommandFailure(.impossible, "\(origin) answers with a redirect, which is not followed")
        }
        let json = try? JSONValue(parsing: answer.body, limits: .init(bytes: Self.maximumAnswer, depth: 64))
        guard let json = json ?? (answer.body.isEmpty ? .null : nil) else {
            throw CommandFailure(.impossible, "\(origin) does not answer in JSON, status \(answer.status)")
        }
        return AdminResponse(status: answer.status, body: json, entityTag: answer.headers.values("ETag").first)
    }

    func close() async {}
}
