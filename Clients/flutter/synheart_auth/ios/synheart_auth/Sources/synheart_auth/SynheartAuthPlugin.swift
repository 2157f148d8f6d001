internal import AuthContract
@preconcurrency public import Flutter
public import Foundation
internal import SynheartAuth

/// The iOS half of the Flutter plugin: the contract's calls, on the Swift client.
///
/// Flutter calls it on the main thread and takes replies and events there.
@MainActor
public final class SynheartAuthPlugin: NSObject, @preconcurrency FlutterPlugin, @preconcurrency FlutterStreamHandler {
    private let client: any AuthClient
    private let configured: Configured
    /// Changes a configuration before it is used. Tests put keys and records elsewhere.
    private let customize: (inout SynheartAuth.Configuration) -> Void
    /// The running calls that have an id.
    private var running: [Int64: Task<Void, Never>] = [:]
    /// Every running call. `detachFromEngine` cancels them.
    private var tasks: [UUID: Task<Void, Never>] = [:]
    private var listening: Task<Void, Never>?
    private var isAttached = true

    init(
        client: any AuthClient, configured: Configured,
        customize: @escaping (inout SynheartAuth.Configuration) -> Void = { _ in }
    ) {
        self.client = client
        self.configured = configured
        self.customize = customize
    }

    /// Connects a plugin with the engine's channels. It uses `SynheartAuth.shared`, as the app's own Swift code does.
    public static func register(with registrar: any FlutterPluginRegistrar) {
        register(SynheartAuthPlugin(client: SynheartAuth.shared, configured: .process), registrar)
    }

    static func register(_ plugin: SynheartAuthPlugin, _ registrar: any FlutterPluginRegistrar) {
        let messenger = registrar.messenger()
        let calls = FlutterMethodChannel(name: Contract.callsChannel, binaryMessenger: messenger)
        registrar.addMethodCallDelegate(plugin, channel: calls)
        FlutterEventChannel(name: Contract.statesChannel, binaryMessenger: messenger).setStreamHandler(plugin)
        registrar.publish(plugin)
    }

    /// Cancels the calls of this engine, which gets no reply. Operations of the client, such as a registration, go on.
    public func detachFromEngine(for registrar: any FlutterPluginRegistrar) {
        isAttached = false
        listening?.cancel()
        for task in tasks.values { task.cancel() }
    }

    /// Makes a call of the contract, and replies once.
    public func handle(_ call: FlutterMethodCall, result: @escaping FlutterResult) {
        guard let method = Contract.calls[call.method] else { return result(FlutterMethodNotImplemented) }
        let fields: Fields
        do throws(MalformedMessage) {
            fields = try Fields(call.arguments, method.arguments, call.method)
        } catch {
            return result(FlutterError(code: Contract.malformed, message: error.message, details: nil))
        }
        if call.method == "cancel" {
            running[fields.integer("call")]?.cancel()
            return result(nil)
        }
        let id = fields.optionalInteger("call")
        if let id, running[id] != nil {
            let message = "\(call.method).call: another call has this id"
            return result(FlutterError(code: Contract.malformed, message: message, details: nil))
        }
        let name = call.method
        let key = UUID()
        let task = Task {
            let reply = await reply(name, method, fields)
            if let id { running[id] = nil }
            tasks[key] = nil
            // A detached engine accepts no reply.
            if isAttached { result(reply) }
        }
        tasks[key] = task
        if let id { running[id] = task }
    }

    /// Sends the changes of state from now on.
    public func onListen(withArguments arguments: Any?, eventSink events: @escaping FlutterEventSink) -> FlutterError? {
        listening?.cancel()
        let changes = client.stateChanges
        listening = Task {
            for await change in changes where !Task.isCancelled { events(Self.message(change)) }
        }
        return nil
    }

    /// Sends no more changes.
    public func onCancel(withArguments arguments: Any?) -> FlutterError? {
        listening?.cancel()
        listening = nil
        return nil
    }

    private func reply(_ name: String, _ method: Call, _ fields: Fields) async -> Any? {
        do {
            let value = try await make(name, fields)
            guard let shape = method.result else { return nil }
            do throws(MalformedMessage) { try shape.check(value, name) } catch {
                // Only the result of `send` is another server's answer, which may have any size. The plugin itself makes all other
                // results. So if another result does not fit the channel, the plugin has a bug.
                guard name == "send" else {
                    return FlutterError(code: Contract.malformed, message: error.message, details: nil)
                }
                // The server has answered, so the request may have taken effect.
                throw SynheartAuthError.fromCode(
                    "ANSWER_TOO_LARGE", "the answer does not fit the channel: \(error.message)", mayHaveHappened: true)
            }
            return value
        } catch let error as ConfiguredOtherwise {
            return Self.failure("NOT_CONFIGURED", error.message)
        } catch let error as SynheartAuthError {
            return Self.failure(error)
        } catch is CancellationError {
            // Dart ignores this reply: its call has already ended with an error, in which `mayHaveHappened` is true for
            // a `send`.
            return Self.failure(Contract.cancelled, "the caller cancelled")
        } catch {
            return Self.failure(
                SynheartAuthError.fromCode(
                    "CRYPTO_ERROR", "unexpected: \(type(of: error))", mayHaveHappened: name == "send"))
        }
    }

    private func make(_ name: String, _ fields: Fields) async throws -> Any? {
        let appID = fields.text("appId")
        let scheme = fields.optionalText("scheme").map { $0 == "one" ? SignatureScheme.one : .two }
        switch name {
        case "configure":
            let settings = Settings(
                baseUrl: fields.text("baseUrl"), origins: Set(fields.texts("origins")),
                aliases: Set(fields.texts("aliases")), scheme: scheme ?? .one,
                rotatesAutomatically: fields.flag("rotatesAutomatically"),
                developmentMode: fields.flag("developmentMode"))
            try configured.once(settings) { try client.configure(settings, customize) }
            return nil
        case "isRegistered": return NSNumber(value: try await client.isRegistered(appID: appID))
        case "registerDevice":
            let registration = try await client.registerDevice(appID: appID, joins: fields.flag("joins"))
            return ["status": registration.status.rawValue, "deviceId": registration.deviceId]
        case "getDeviceId": return try await client.getDeviceId(appID: appID)
        case "getState": return try await client.state(appID: appID).rawValue
        case "signRequest":
            let headers = try await client.signRequest(
                appID: appID, method: fields.text("method"), path: fields.text("path"), bodyBytes: fields.bytes("body"),
                scheme: scheme)
            return Self.headers(headers.fields)
        case "sign":
            let headers = try await client.sign(
                appID: appID, scheme: scheme, method: fields.text("method"), url: fields.text("url"),
                bodyBytes: fields.bytes("body"), asserting: fields.flag("asserting"))
            return Self.headers(headers.fields)
        case "send":
            let answer = try await client.send(
                Self.request(fields), appID: appID, scheme: scheme, asserting: fields.flag("asserting"))
            return [
                "status": NSNumber(value: answer.status),
                "headers": Self.headers(answer.headers.lines.map { ($0.name, $0.value) }),
                "body": FlutterStandardTypedData(bytes: Data(answer.body)),
            ]
        case "deviceToken":
            let token = try await client.deviceToken(appID: appID, audience: fields.optionalText("audience"))
            return ["token": token.token, "remainingMs": NSNumber(value: max(token.remaining.milliseconds, 0))]
        case "rotateKey":
            let reason = RotationReason(rawValue: fields.text("reason")) ?? .scheduled
            let rotation = try await client.rotateKey(appID: appID, reason: reason)
            return ["deviceId": rotation.deviceId, "effectiveAt": NSNumber(value: rotation.effectiveAt.seconds)]
        case "resetDeviceIdentity":
            let reason = ResetReason(rawValue: fields.text("reason")) ?? .userRequested
            try await client.resetDeviceIdentity(appID: appID, reason: reason)
            return nil
        case "maintain":
            try await client.maintain(appID: appID)
            return nil
        default:  // correctClockSkew, the last one of the contract
            try await client.correctClockSkew(
                serverTimestamp: fields.number("serverTimestamp"), appID: fields.optionalText("appId"))
            return nil
        }
    }

    private static func request(_ fields: Fields) -> TransportRequest {
        TransportRequest(
            method: fields.text("method"), url: fields.text("url"), headers: HeaderFields(fields.headers("headers")),
            body: fields.bytes("body"), deadline: .milliseconds(fields.integer("timeoutMs")),
            maximumAnswer: Int(fields.integer("maximumAnswer")))
    }

    private static func headers(_ fields: [(name: String, value: String)]) -> [[String: Any]] {
        fields.map { ["name": $0.name, "value": $0.value] }
    }

    private static func message(_ change: StateChange) -> [String: Any] {
        [
            "appId": change.appID, "from": change.transition.from.rawValue, "to": change.transition.to.rawValue,
        ]
    }

    private static func failure(_ error: SynheartAuthError) -> FlutterError {
        let details: [String: Any] = [
            "recovery": error.recovery.rawValue,
            "retryAfterMs": error.retryAfter.map { NSNumber(value: $0.milliseconds) } ?? NSNull(),
            "fromService": NSNumber(value: error.code.isFromService),
            "mayHaveHappened": NSNumber(value: error.mayHaveHappened),
            "from": error.transition?.from.rawValue ?? NSNull(),
            "to": error.transition?.to.rawValue ?? NSNull(),
        ]
        return FlutterError(code: error.code.text, message: error.message, details: details)
    }

    /// An error of the plugin itself: nothing was sent, and no retry helps.
    private static func failure(_ code: String, _ message: String) -> FlutterError {
        let details: [String: Any] = [
            "recovery": SynheartAuthError.Recovery.none.rawValue, "retryAfterMs": NSNull(),
            "fromService": NSNumber(value: false), "mayHaveHappened": NSNumber(value: false), "from": NSNull(),
            "to": NSNull(),
        ]
        return FlutterError(code: code, message: message, details: details)
    }
}

extension Duration {
    /// Whole milliseconds.
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
