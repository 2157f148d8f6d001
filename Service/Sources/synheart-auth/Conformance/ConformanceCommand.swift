import ArgumentParser
import AuthContract
import Foundation
import StrictJSON

/// Plays attacks against a service, and the faults of a service against a client.
struct ConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conformance",
        abstract: "Say which rules of the protocol a service or a client keeps.",
        discussion: """
            Without a subcommand it plays against the service at --url, with the options of `conformance service`. The page \
            docs/conformance.md lists the cases of both.

              synheart-auth conformance --url https://auth.example.com \\
                  --app com.example.staging
              synheart-auth conformance client -- ./my-client
            """,
        subcommands: [ServiceConformanceCommand.self, ClientConformanceCommand.self],
        defaultSubcommand: ServiceConformanceCommand.self)
}

/// Plays devices and attackers against a service.
struct ServiceConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service",
        abstract: "Play devices and attackers against a URL, and say which rules of the protocol hold.",
        discussion: """
            For any service of this protocol, and after each deployment: it notices a proxy that changes paths, bodies or headers, \
            nodes that do not share replays, a clock that is wrong, and a backend that can be reached without a signature. The \
            page docs/conformance.md lists the cases.

            The app must be one for tests, of channel staging or dev. It must trust the test kit's Apple and Google of \
            --authority, like the record that `apps example` prints. All phones are deregistered at the end; tombstones stay. The \
            run takes about 300 challenges and registrations, and waits where the service's rate limits ask for it.

              synheart-auth apps example --app com.example.staging > app.json
              synheart-auth apps add --file app.json
              synheart-auth conformance --url https://auth.example.com \\
                  --app com.example.staging

              synheart-auth conformance --url http://10.0.0.1:8080 \\
                  --second-url http://10.0.0.2:8080 --app com.example.staging
              synheart-auth conformance --url https://auth.example.com \\
                  --app com.example.staging --credential-file credential \\
                  --backend https://api.example.com/v1/readings --json
              synheart-auth conformance --url https://auth.example.com \\
                  --case clock --case path-slashes
              synheart-auth conformance service --list

            With --json, each case is an object on a line of its own. Exit code 0: no case fails; 1: a case fails; 2: no service \
            answers, the app is unknown, or no case could be played.
            """)

    @Option(help: "The service, as phones reach it.") var url: String?
    @Option(name: .customLong("second-url"), help: "Another node of the same service.") var secondURL: String?
    @Option(help: "A route that accepts a signed POST of {}, behind a gateway or a backend's library.")
    var backend: String?
    @Flag(name: .customLong("backend-get"), help: "The route is read with GET: its gateway passes no bodies on.")
    var backendIsRead = false
    @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
    @Option(name: .customLong("other-app"), help: "The id of another app of the service.") var otherApp: String?
    @OptionGroup var authorities: AuthorityOptions
    @Option(name: .customLong("credential-file"), help: "A file with a service credential for the app.")
    var credentialFile: String?
    @Option(name: .customLong("asserted-path"), help: "A path on which the app demands assertions.")
    var assertedPath: String?
    @Option(
        help: ArgumentHelp(
            "The service's operations listener, to revoke a phone.",
            discussion: "With an admin credential in $SYNHEART_AUTH_CREDENTIAL, or in $SYNHEART_AUTH_CREDENTIAL_FILE."))
    var operations: String?
    @Option(help: "Seconds that a case may wait for a clock; 92 for all cases.") var wait: Int64 = 0
    @Option(help: "Seconds after which the cases that are left are skipped.") var timeout: Int64 = 900
    @Option(name: .customLong("case"), help: "Play only this case. It may be given several times.")
    var cases: [String] = []
    @Flag(help: "List the cases, and play none.") var list = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        for (option, text) in [("--url", url), ("--second-url", secondURL)] {
            guard let text, (try? RequestOrigin(Self.origin(text))) == nil else { continue }
            throw ValidationError("\(option) is such as https://auth.example.com, without a path")
        }
        guard backend.map({ BackendRoute.parts($0) != nil }) ?? true else {
            throw ValidationError("--backend is such as https://api.example.com/v1/readings, without a query")
        }
        guard 0...600 ~= wait else { throw ValidationError("--wait is 0 to 600") }
        guard 1...86_400 ~= timeout else { throw ValidationError("--timeout is 1 to 86400") }
        guard assertedPath == nil || credentialFile != nil else {
            throw ValidationError("--asserted-path needs --credential-file")
        }
        for id in cases where !ConformanceCase.all.contains(where: { $0.id == id }) {
            throw ValidationError("there is no case \(id): see --list")
        }
    }

    func run() async throws {
        try await reporting {
            let chosen = ConformanceCase.all.filter { cases.isEmpty || cases.contains($0.id) }
            guard !list else { return try ConformanceReport.list(chosen, output) }
            guard let url else {
                throw ValidationError("name the service with --url, or see the cases with --list")
            }
            let transport = PooledTransport(concurrency: 32)
            try await closing(transport.shutdown) {
                try await play(chosen, on: try stage(at: Self.origin(url), transport))
            }
        }
    }

    private func stage(at url: String, _ transport: PooledTransport) throws -> Stage {
        let environment = ProcessInfo.processInfo.environment
        let options = Stage.Options(
            url: url, secondURL: secondURL.map(Self.origin), backend: backend, backendIsRead: backendIsRead,
            appID: try AppID(app),
            otherAppID: try otherApp.map { try AppID($0) },
            credential: try credentialFile.map {
                try InputFile.secret($0, namedBy: "--credential-file").trimmingCharacters(in: .whitespacesAndNewlines)
            }, assertedPath: try assertedPath.map { try RequestPath($0).text },
            operations: try operations.map {
                try RemoteService(
                    url: $0, credential: CredentialSource.credential(file: nil, environment: environment))
            }, wait: wait, deadline: .now + .seconds(timeout))
        return Stage(
            options: options, apple: try authorities.apple(), google: try authorities.google(), transport: transport)
    }

    private func play(_ cases: [ConformanceCase], on stage: Stage) async throws {
        var report = ConformanceReport(ConformanceCase.all, output)
        try await interruptible {
            let run: ConformanceRun
            do { run = try await ConformanceRun(stage) } catch {
                await tellLeft(ConformanceRun.leave(stage))
                throw error
            }
            if run.platforms.isEmpty {
                StandardError.print(
                    "no phone registers: does the app trust the authority? `apps example --app \(stage.appID)` with the same "
                        + "--authority prints a record that does")
            }
            let leave = { await tellLeft(ConformanceRun.leave(stage)) }
            try await closing(leave) {
                try await run.play(cases) { item, result in try report.tell(item, result) }
            }
        }
        try report.end()
    }

    private func tellLeft(_ left: Int) {
        guard left > 0 else { return }
        StandardError.print("\(left) phones could not be deregistered: `devices list` names them")
    }

    private static func origin(_ url: String) -> String { url.hasSuffix("/") ? String(url.dropLast()) : url }
}
