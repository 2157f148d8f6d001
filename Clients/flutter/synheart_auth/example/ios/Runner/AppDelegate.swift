import Flutter
import UIKit

@main
@objc class AppDelegate: FlutterAppDelegate, FlutterImplicitEngineDelegate {
  /// Called when the storyboard's view controller has created its engine.
  func didInitializeImplicitFlutterEngine(_ engineBridge: FlutterImplicitEngineBridge) {
    Self.register(with: engineBridge.pluginRegistry)
  }

  /// Registers the plugins with an engine. An app that makes its own engines calls this once for each engine.
  static func register(with registry: any FlutterPluginRegistry) {
    GeneratedPluginRegistrant.register(with: registry)
  }
}
