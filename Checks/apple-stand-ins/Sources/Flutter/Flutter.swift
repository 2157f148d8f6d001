public import Foundation

// Stand-ins for the parts of Flutter's iOS framework that the plugin uses, as its headers declare them. There is no codec: values
// pass as the standard codec makes them on iOS, where numbers and booleans are NSNumber and null is NSNull.

public typealias FlutterResult = (Any?) -> Void
public typealias FlutterEventSink = (Any?) -> Void

/// A plugin's reply to an unknown method. It is a variable, because Swift imports Flutter's C constant as one.
public var FlutterMethodNotImplemented: NSObject = NSObject()

public final class FlutterMethodCall: NSObject {
    public let method: String
    public let arguments: Any?

    public init(methodName method: String, arguments: Any?) {
        self.method = method
        self.arguments = arguments
    }
}

public final class FlutterError: NSObject {
    public let code: String
    public let message: String?
    public let details: Any?

    public init(code: String, message: String?, details: Any?) {
        self.code = code
        self.message = message
        self.details = details
    }
}

public enum FlutterStandardDataType: Int, Sendable {
    case uInt8
    case int32
    case int64
    case float32
    case float64
}

public final class FlutterStandardTypedData: NSObject {
    public let data: Data
    public let type: FlutterStandardDataType

    public init(bytes data: Data) {
        self.data = data
        type = .uInt8
    }

    public init(int32 data: Data) {
        self.data = data
        type = .int32
    }
}

public protocol FlutterBinaryMessenger: NSObjectProtocol {}

public protocol FlutterStreamHandler: NSObjectProtocol {
    func onListen(withArguments arguments: Any?, eventSink events: @escaping FlutterEventSink) -> FlutterError?
    func onCancel(withArguments arguments: Any?) -> FlutterError?
}

public protocol FlutterPlugin: NSObjectProtocol {
    static func register(with registrar: any FlutterPluginRegistrar)
    func handle(_ call: FlutterMethodCall, result: @escaping FlutterResult)
    func detachFromEngine(for registrar: any FlutterPluginRegistrar)
}

public protocol FlutterPluginRegistrar: NSObjectProtocol {
    func messenger() -> any FlutterBinaryMessenger
    func publish(_ value: NSObject)
    func addMethodCallDelegate(_ delegate: any FlutterPlugin, channel: FlutterMethodChannel)
}

public final class FlutterMethodChannel: NSObject {
    public let name: String

    public init(name: String, binaryMessenger messenger: any FlutterBinaryMessenger) { self.name = name }
}

/// Keeps the stream handlers of event channels. In Flutter, the engine does this behind the messenger.
public protocol StreamHandlers: AnyObject {
    func set(_ handler: (any FlutterStreamHandler)?, of channel: String)
}

public final class FlutterEventChannel: NSObject {
    private let name: String
    private let messenger: any FlutterBinaryMessenger

    public init(name: String, binaryMessenger messenger: any FlutterBinaryMessenger) {
        self.name = name
        self.messenger = messenger
    }

    public func setStreamHandler(_ handler: (any FlutterStreamHandler)?) {
        (messenger as? any StreamHandlers)?.set(handler, of: name)
    }
}
