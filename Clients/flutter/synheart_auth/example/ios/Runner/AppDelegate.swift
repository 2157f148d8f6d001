import Flutter
import UIKit

@main
@objc class AppDelegate: FlutterAppDelegate, FlutterImplicitEngineDelegate {
  /// The storyboard's view controller created its engine.
  func didInitializeImplicitFlutterEngine(_ engineBridge: FlutterImplicitEngineBridge) {
    Self.register(with: engineBridge.pluginRegistry)
  }

  /// Registers the plugins with an engine. A host that makes an engine itself calls it once for each engine.
  static func register(with registry: any FlutterPluginRegistry) {
    GeneratedPluginRegistrant.register(with: registry)
  }
}
