import AuthContract
import StrictJSON

/// A rule of the protocol for clients, and the faults that test it.
struct ClientCase: ListedCase {
    let id: String
    let section: String
    let sentence: String
    /// The client's instructions. Each element is one start of its command, with the same state folder.
    let launches: [[ClientStep]]
    /// The faults for requests of each name, in order: the first request meets the first fault. When no fault is
    /// left, requests get the service's answer.
    let faults: [RequestName: [Fault]]
    /// The number of identities that the client may register.
    let identities: Int
    /// The number of keys that the client may rotate to.
    let newKeys: Int
    /// Refusals of the service that the client may cause. Any other one is the client's mistake.
    let allowed: Set<ErrorCode>
    /// Judges the client's behavior. Throws a `CaseEnd` if the rule does not hold.
    let check: @Sendable (ClientTrace) throws -> Void

    /// - Parameters:
    ///   - id: the name of the case.
    ///   - section: the heading of `docs/protocol.md` that has the rule.
    ///   - sentence: the statement that the case checks.
    ///   - launches: the steps of each start of the command.
    ///   - faults: the faults for requests of each name, in order; later requests get the service's answer.
    ///   - identities: how many identities the client may register.
    ///   - newKeys: how many keys the client may rotate to; nil: one for each step that rotates.
    ///   - allowed: refusals of the service that the client may get.
    ///   - check: judges the client's behavior.
    init(
        _ id: String, _ section: String, _ sentence: String, _ launches: [ClientStep]...,
        faults: [RequestName: [Fault]] = [:], identities: Int = 1, newKeys: Int? = nil, allowed: Set<ErrorCode> = [],
        check: @escaping @Sendable (ClientTrace) throws -> Void
    ) {
        (self.id, self.section, self.sentence) = (id, section, sentence)
        (self.launches, self.faults, self.identities, self.allowed) = (launches, faults, identities, allowed)
        self.newKeys = newKeys ?? launches.joined().count { $0.name == "rotate" }
        self.check = check
    }

    /// All cases, in the order in which they are reported.
    static let all: [ClientCase] = [lives, registrations, requests, refusals, clocks, rotations].flatMap { $0 }
}

/// An instruction for the client.
struct ClientStep: Sendable {
    let name: String
    private let details: [(String, JSONValue)]

    init(_ name: String, _ details: [(String, JSONValue)] = []) { (self.name, self.details) = (name, details) }

    var json: JSONObject { JSONObject([("do", .string(name))] + details) }

    /// Register, or find that the device is registered.
    static let register = ClientStep("register")
    /// Fetch a device token.
    static let token = ClientStep("token")
    /// Finish interrupted work of an earlier launch, and rotate a key that is due.
    static let maintain = ClientStep("maintain")
    /// Give the identity up.
    static let reset = ClientStep("reset")
    static let rotate = ClientStep("rotate", [("reason", "scheduled")])
    static let get = send("GET", RequestName.get.path)
    static let post = send("POST", RequestName.post.path, body: "{}")

    /// Sign a request to a backend, send it and recover from refusals.
    static func send(
        _ method: String, _ target: String, body: String = "", headers: [(String, String)] = []
    ) -> ClientStep {
        let type = body.isEmpty ? [] : [("Content-Type", "application/json")]
        return ClientStep(
            "send",
            [
                ("method", .string(method)), ("target", .string(target)), ("body", .string(body)),
                ("headers", .object(JSONObject((type + headers).map { ($0.0, .string($0.1)) }))),
            ])
    }
}

/// Method and path of a request.
struct RequestName: Hashable, Sendable, CustomStringConvertible {
    let method: String
    let path: String

    init(_ method: String, _ path: String) { (self.method, self.path) = (method, path) }

    init(_ route: Route) { self.init(route.method, route.rawValue) }

    init(_ request: WireRequest) {
        self.init(request.method, String(request.target.prefix { $0 != "?" }))
    }

    var description: String { "\(method) \(path)" }

    static let challenge = RequestName(.challenge)
    static let register = RequestName(.register)
    static let rotate = RequestName(.rotateKey)
    static let status = RequestName(.status)
    static let token = RequestName(.token)
    static let device = RequestName(.device)
    /// Requests to a backend.
    static let get = RequestName("GET", "/v1/readings")
    static let post = RequestName("POST", "/v1/readings")
    /// The path to which redirects lead.
    static let elsewhere = "/elsewhere"
}
