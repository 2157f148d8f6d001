import ArgumentParser
import AuthProxy
import AuthServer
import Foundation
import Logging

/// Runs a sidecar in front of one backend.
struct ProxyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy", abstract: "Run a sidecar that lets only verified requests reach a backend.",
        discussion: """
            Asks the auth service about each request, and forwards it with the identity of the device that signed it. Prints \
            `ready proxy=HOST:PORT` to standard output once it accepts connections. Logs are JSON lines on standard error. \
            SIGTERM or SIGINT finishes requests in flight; a second one stops at once.

            The credential is $SYNHEART_AUTH_CREDENTIAL, or in the file that $SYNHEART_AUTH_CREDENTIAL_FILE or \
            --credential-file names: `credentials create --role service --app APP_ID` makes one.

              synheart-auth proxy --listen 127.0.0.1:8000 \\
                  --backend http://127.0.0.1:3000 --service http://127.0.0.1:8080
              synheart-auth proxy --listen 127.0.0.1:8000 \\
                  --operations-listen 127.0.0.1:9465 \\
                  --origin https://api.example.com \\
                  --backend http://127.0.0.1:3000 --service https://auth.example.com
              synheart-auth proxy --listen 0.0.0.0:8000 \\
                  --trusted-proxy 10.0.0.0/8 --service https://auth.example.com \\
                  --backend https://llm.example.com \\
                  --upstream-header-file /run/secrets/llm-key
            """)

    /// How the proxy tells the backend who signed a request.
    enum IdentityForm: String, ExpressibleByArgument, CaseIterable { case headers, token }

    @OptionGroup var options: ProxyOptions
    @Option(name: .customLong("log-level"), help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("--log-level is trace, debug, info, notice, warning, error or critical")
        }
    }

    func run() async throws {
        // SIGHUP must not end a service.
        _ = Signals.hangups()
        try await reporting {
            var settings = try options.settings(environment: ProcessInfo.processInfo.environment)
            let log = LogWriter(descriptor: STDERR_FILENO)
            // Wait at most 1 s for the log to be written, because the reader of standard error may have stopped reading.
            defer { log.flush(within: .seconds(1)) }
            let level = LogLevel(Logger.Level(rawValue: logLevel) ?? .info)
            LoggingSystem.bootstrap { JSONLogHandler(label: $0, level: level, writer: log) }
            let logger = Logger(label: "synheart-auth.proxy")
            // Each client's connection may need one connection to the backend and one to the auth service.
            settings.server.maximumConnections = min(
                settings.server.maximumConnections, max(1, OpenFiles.makeRoomForConnections() / 3))
            if let file = options.upstreamHeaderFile { Self.warn(about: file, logger) }
            try await serve(AuthProxy(settings, logger: logger))
        }
    }

    /// Runs the proxy and prints the ready line. If the line cannot be written, stops the proxy, because the program that
    /// started the proxy waits for the line.
    private func serve(_ proxy: AuthProxy) async throws {
        let (ready, announce) = AsyncStream.makeStream(of: SidecarServer.Addresses.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { announce.finish() }
                try await proxy.run(
                    onSecondSignal: { _exit(ExitCode.failure.rawValue) }, onReady: { announce.yield($0) })
            }
            for await addresses in ready {
                let operations = addresses.operations.map { " operations=\($0)" } ?? ""
                try StandardOutput.print("ready proxy=\(addresses.requests)\(operations)")
            }
            try await group.waitForAll()
        }
    }

    /// Warns if users other than the owner of a file with secrets can read or change it.
    private static func warn(about file: String, _ logger: Logger) {
        var report = DoctorReport()
        SecretFileChecks.checkMode(of: file, named: "--upstream-header-file", &report)
        for finding in report.findings {
            logger.warning(
                "the file of the upstream headers is not private",
                metadata: ["advice": "\(finding.advice ?? "")", "reason": "\(finding.message)"])
        }
    }
}
