import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// The SDK as `synheart-auth conformance client` starts it: `CrashingDevice conformance [MISBEHAVIOUR]`.
///
/// It does the steps of CONFORMANCE_STEPS and prints the result of each. With a misbehaviour, the cases that test for it must
/// fail.
struct ConformanceClient {
    let sdk: SynheartAuth
    let url: String
    let app: String
    let misbehaviour: Misbehaviour?

    /// Does all steps.
    static func run(_ misbehaviour: String?) async throws {
        let environment = ProcessInfo.processInfo.environment
        func variable(_ name: String) throws -> String {
            guard let value = environment[name] else { throw CocoaError(.keyValueValidation) }
            return value
        }
        let client = try ConformanceClient(
            url: variable("CONFORMANCE_URL"), app: variable("CONFORMANCE_APP"), state: variable("CONFORMANCE_STATE"),
            authority: variable("CONFORMANCE_AUTHORITY"),
            misbehaviour: misbehaviour.flatMap { Misbehaviour(rawValue: $0) })
        let steps = try JSONValue(parsing: variable("CONFORMANCE_STEPS")).array ?? []
        for step in steps {
            // Unbuffered: the process may be killed in the next step.
            try FileHandle.standardOutput.write(contentsOf: Data((await client.result(of: step).text() + "\n").utf8))
        }
    }

    init(url: String, app: String, state: String, authority: String, misbehaviour: Misbehaviour?) throws {
        (self.url, self.app, self.misbehaviour) = (url, app, misbehaviour)
        let directory = misbehaviour == .forgetsState ? "\(state)/\(UUID().uuidString)" : state
        var configuration = try SynheartAuth.Configuration(baseUrl: url)
        configuration.storage = FileStorage(directory: directory)
        configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
        configuration.attestation = SimulatedAppAttest(
            iosAppID: "\(SoftwareDevice.team).\(app)", authority: try AuthorityFile.load(authority),
            directory: directory + "/app-attest")
        configuration.transport = MisbehavingTransport(base: DefaultTransport(), misbehaviour: misbehaviour)
        configuration.logger = SilentLogger()
        sdk = SynheartAuth(configuration)
    }

    private func result(of step: JSONValue) async -> JSONValue {
        do {
            guard let members = try await perform(try JSONFields(step)) else { return ["unsupported": true] }
            return .object(JSONObject([("ok", JSONValue.bool(true))] + members))
        } catch {
            let code = (error as? SynheartAuthError)?.code.text ?? "\(error)"
            return ["ok": false, "error": .string(code)]
        }
    }

    /// Does a step. Returns the result's members besides `ok`; nil if the step is unknown.
    private func perform(_ step: JSONFields) async throws -> [(String, JSONValue)]? {
        switch try step.string("do") {
        case "register":
            let registration = try await sdk.registerDevice(appID: app)
            return [("device_id", .string(registration.deviceId))]
        case "send": return [("status", .integer(try await send(step)))]
        case "token": _ = try await sdk.deviceToken(appID: app)
        case "rotate":
            let reason = try step.optionalString("reason").flatMap { RotationReason(rawValue: $0) } ?? .scheduled
            try await sdk.rotateKey(appID: app, reason: reason)
        case "maintain": if misbehaviour != .neverMaintains { try await sdk.maintain(appID: app) }
        case "reset": try await sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
        default: return nil
        }
        return []
    }

    private func send(_ step: JSONFields) async throws -> Int {
        let headers = step.optionalValue("headers")?.object?.members ?? []
        let request = TransportRequest(
            method: try step.string("method"), url: url + (try step.string("target")),
            headers: HeaderFields(headers.map { ($0.name, $0.value.string ?? "") }),
            body: Array(try step.optionalString("body")?.utf8 ?? "".utf8))
        do { return try await sdk.send(request, appID: app).status } catch let error as SynheartAuthError {
            switch (misbehaviour, error.code) {
            case (.registersAfterRevocation, .deviceRevoked):
                try await sdk.resetDeviceIdentity(appID: app, reason: .serverInstructed)
                try await sdk.registerDevice(appID: app)
            case (.repeatsReplays, .nonceReplay): break
            default: throw error
            }
            return try await sdk.send(request, appID: app).status
        }
    }
}

/// The misbehaviour of a wrong client.
enum Misbehaviour: String {
    case sendsAgain = "sends-again"
    case followsRedirects = "follows-redirects"
    case ignoresRetryAfter = "ignores-retry-after"
    case changesBodies = "changes-bodies"
    case changesPaths = "changes-paths"
    case reusesNonces = "reuses-nonces"
    case believesPages = "believes-pages"
    case readsCodesBelow400 = "reads-codes-below-400"
    case forgetsState = "forgets-state"
    case registersAfterRevocation = "registers-after-revocation"
    case repeatsReplays = "repeats-replays"
    case neverMaintains = "never-maintains"
}

/// The SDK's transport, with an optional misbehaviour.
struct MisbehavingTransport: HTTPTransport {
    let base: any HTTPTransport
    let misbehaviour: Misbehaviour?

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let request = changed(request)
        do throws(TransportError) {
            let answer = try await base.send(request)
            guard misbehaviour == .followsRedirects, 300..<400 ~= answer.status,
                let place = answer.headers.values("Location").first
            else { return changed(answer) }
            let origin = request.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
            return try await base.send(request.with(url: origin.joined(separator: "/") + place))
        } catch {
            guard misbehaviour == .sendsAgain else { throw error }
            return try await base.send(request)
        }
    }

    private func changed(_ request: TransportRequest) -> TransportRequest {
        switch misbehaviour {
        case .changesBodies: request.with(body: request.body.filter { $0 > UInt8(ascii: " ") })
        case .changesPaths: request.with(url: request.url.replacing("%2F", with: "/"))
        case .reusesNonces:
            request.with(
                headers: HeaderFields(
                    request.headers.lines.map {
                        ($0.name, $0.name == HeaderName.nonce ? "0b9c8d7e-6f5a-4b3c-8d2e-1f0a9b8c7d6e" : $0.value)
                    }))
        default: request
        }
    }

    private func changed(_ answer: TransportResponse) -> TransportResponse {
        var lines = answer.headers.lines.map { ($0.name, $0.value) }
        var status = answer.status
        switch misbehaviour {
        case .ignoresRetryAfter: lines.removeAll { $0.0.lowercased() == "retry-after" }
        case .believesPages where status >= 400 && !answer.headers.contains(HeaderName.error):
            lines.append((HeaderName.error, ErrorCode.deviceRevoked.rawValue))
        case .readsCodesBelow400 where answer.headers.contains(HeaderName.error): status = max(status, 403)
        default: break
        }
        return TransportResponse(status: status, headers: HeaderFields(lines), body: answer.body)
    }
}

extension TransportRequest {
    fileprivate func with(url: String? = nil, headers: HeaderFields? = nil, body: [UInt8]? = nil) -> TransportRequest {
        TransportRequest(
            method: method, url: url ?? self.url, headers: headers ?? self.headers, body: body ?? self.body,
            deadline: deadline, maximumAnswer: maximumAnswer, streamsAnswer: streamsAnswer)
    }
}
