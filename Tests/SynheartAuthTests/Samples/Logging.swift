import SynheartAuth

// The samples of Logging.md, in its order. DocumentationTests holds the page against this file.

enum Logging {
    struct AppLogger: AuthLogger {
        let write: @Sendable (String) -> Void

        func log(_ entry: LogEntry) {
            var text = "synheart-auth \(entry.level.rawValue) \(entry.event.rawValue) app=\(entry.appID)"
            if let device = entry.device { text += " device=\(device)" }
            if let code = entry.code { text += " code=\(code.text)" }
            if let change = entry.transition { text += " \(change.from.rawValue)->\(change.to.rawValue)" }
            if let duration = entry.duration { text += " took=\(duration)" }
            write(text)
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
