import SynheartAuth

// The samples of Logging.md, in its order. DocumentationTests compares the page with this file.

enum Logging {
    struct AppLogger: AuthLogger {
        let write: @Sendable (String) -> Void

        func log(_ entry: LogEntry) {
            write("synheart-auth \(entry.level.rawValue): \(entry)")
        }
    }

    static func configuration() throws -> SynheartAuth.Configuration {
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
        configuration.logger = AppLogger { print($0) }
        return configuration
    }

    static func follow(_ auth: SynheartAuth) async {
        for await change in auth.stateChanges where change.transition.to == .keyInvalid {
            await showThatTheDeviceRegistersAgain()
        }
    }

    private static func showThatTheDeviceRegistersAgain() async {}
}
