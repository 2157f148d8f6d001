import Flutter
import XCTest

@testable import Runner

/// Runs in the app's process, on a simulator or a phone.
final class RunnerTests: XCTestCase {
  @MainActor func testEachEngineHasThePlugin() {
    for name in ["first", "second"] {
      let engine = FlutterEngine(name: name)
      XCTAssertTrue(engine.run())
      AppDelegate.register(with: engine)
      XCTAssertTrue(engine.hasPlugin("SynheartAuthPlugin"), name)
    }
  }
}
