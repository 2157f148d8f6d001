@preconcurrency import Flutter
import Foundation
import SynheartAuth

@testable import synheart_auth

/// The reply that Dart gets for a call. Unchecked: made and read only on the main actor.
enum Answer: @unchecked Sendable {
    case success(Any?)
    case failure(code: String, message: String, details: [String: Any])
    case notImplemented
}

extension Answer {
    var value: Any? { if case .success(let value) = self { value } else { nil } }
    var isSuccess: Bool { if case .success = self { true } else { false } }
    var code: String? { if case .failure(let code, _, _) = self { code } else { nil } }
    var message: String { if case .failure(_, let message, _) = self { message } else { "" } }
    var details: [String: Any] { if case .failure(_, _, let details) = self { details } else { [:] } }
    var fields: [String: Any] { value as? [String: Any] ?? [:] }
}

/// A simulated Flutter engine with the plugin: Dart's side of the channels. It has no codec: tests pass the types that the
/// standard codec makes on iOS, such as `NSNull`.
@MainActor
final class Engine: NSObject, @preconcurrency FlutterPluginRegistrar, FlutterBinaryMessenger,
    @preconcurrency StreamHandlers
{
    let plugin: SynheartAuthPlugin
    private var handlers: [String: any FlutterStreamHandler] = [:]
    private(set) var calls: FlutterMethodChannel?
    private(set) var published: NSObject?
    private(set) var replies = 0

    init(
        _ client: any AuthClient, configured: Configured = Configured(),
        customize: @escaping (inout SynheartAuth.Configuration) -> Void = { _ in }
    ) {
        plugin = SynheartAuthPlugin(client: client, configured: configured, customize: customize)
        super.init()
        SynheartAuthPlugin.register(plugin, self)
    }

    func messenger() -> any FlutterBinaryMessenger { self }
    func publish(_ value: NSObject) { published = value }
    func addMethodCallDelegate(_ delegate: any FlutterPlugin, channel: FlutterMethodChannel) { calls = channel }
    func set(_ handler: (any FlutterStreamHandler)?, of channel: String) { handlers[channel] = handler }

    /// Makes a call and waits for its reply.
    func call(_ method: String, _ arguments: Any?) async -> Answer {
        let reply = await withCheckedContinuation { (waiting: CheckedContinuation<Reply, Never>) in
            plugin.handle(FlutterMethodCall(methodName: method, arguments: arguments)) { [self] reply in
                MainActor.assumeIsolated {
                    replies += 1
                    // A second reply traps here.
                    waiting.resume(returning: Reply(value: reply))
                }
            }
        }
        return reply.answer
    }

    /// Makes a call without waiting for its reply. Returns a function that counts the replies so far.
    func start(_ method: String, _ arguments: Any?) -> () -> Int {
        let count = Count()
        plugin.handle(FlutterMethodCall(methodName: method, arguments: arguments)) { _ in count.value += 1 }
        return { count.value }
    }

    func listen(_ sink: @escaping FlutterEventSink) -> FlutterError? {
        handlers[Contract.statesChannel]?.onListen(withArguments: nil, eventSink: sink)
    }

    func cancel() -> FlutterError? { handlers[Contract.statesChannel]?.onCancel(withArguments: nil) }
    func detach() { plugin.detachFromEngine(for: self) }

    private final class Count { var value = 0 }

    // Unchecked: made and read only on the main actor.
    private struct Reply: @unchecked Sendable {
        let value: Any?

        @MainActor var answer: Answer {
            if let error = value as? FlutterError {
                return .failure(
                    code: error.code, message: error.message ?? "", details: error.details as? [String: Any] ?? [:])
            }
            if let object = value as? NSObject, object === FlutterMethodNotImplemented { return .notImplemented }
            return .success(value)
        }
    }
}

/// Lets other tasks of the main actor run until a condition holds.
@MainActor
func until(_ condition: () -> Bool) async {
    while !condition() { await Task.yield() }
}
