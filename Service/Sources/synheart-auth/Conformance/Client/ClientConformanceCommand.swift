import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Bytes
import Logging
import StrictJSON

/// Plays the service and its faults against a client.
struct ClientConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client",
        abstract: "Play the service and its faults against a client, and say which rules it keeps.",
        discussion: """
            For a client in any language. The command starts a service of its own on loopback, with faults in front of it: lost \
            answers, refusals, pages of gateways, redirects, wrong times. It starts COMMAND once or twice for each case, with these \
            variables, and judges what arrives:

              CONFORMANCE_URL        the base URL of the service and of a backend
              CONFORMANCE_APP        the app id
              CONFORMANCE_STATE      a folder for what the client stores
              CONFORMANCE_STEPS      what to do, as JSON
              CONFORMANCE_AUTHORITY  the file of --authority
              CONFORMANCE_CASE       the name of the case

            COMMAND prints the result of each step as a JSON object on a line of its own, and ends with exit code 0. The page \
            docs/conformance.md describes the steps and lists the cases.

            The app allows development mode, and trusts the test kit's Apple and Google of --authority.

              synheart-auth conformance client -- ./my-client
              synheart-auth conformance client --case lost-post --json -- ./my-client
              synheart-auth conformance client --list

            With --json, each case is an object on a line of its own. Exit code 0: no case fails; 1: a case fails; 2: the command \
            cannot be started, or no case could be played.
            """)

    @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
    @Option(
        help: ArgumentHelp(
            "The test kit's Apple; its Google lies beside it, in NAME.google.json. Made where there are none; by default in a temporary folder.",
            valueName: "NAME.pem"))
    var authority: String?
    @Option(help: "Cases that are played at once.") var jobs = 4
    @Option(help: "Seconds that one start of COMMAND may take.") var timeout: Int64 = 60
    @Option(name: .customLong("case"), help: "Play only this case. It may be given several times.")
    var cases: [String] = []
    @Flag(help: "List the cases, and play none.") var list = false
    @OptionGroup var output: OutputOptions
    @Argument(parsing: .postTerminator, help: "The client's command, after --.") var command: [String] = []

    func validate() throws {
        guard list || !command.isEmpty else {
            throw ValidationError("name the client's command after --, or see the cases with --list")
        }
        guard 1...64 ~= jobs else { throw ValidationError("--jobs is 1 to 64") }
        guard 1...3600 ~= timeout else { throw ValidationError("--timeout is 1 to 3600") }
        for id in cases where !ClientCase.all.contains(where: { $0.id == id }) {
            throw ValidationError("there is no case \(id): see --list")
        }
    }

    func run() async throws {
        try await reporting {
            let chosen = ClientCase.all.filter { cases.isEmpty || cases.contains($0.id) }
            guard !list else { return try ConformanceReport.list(chosen, output) }
            LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
            try await withFolder(nil, named: "conformance") { folder in try await play(chosen, in: folder) }
        }
    }

    private func play(_ cases: [ClientCase], in folder: String) async throws {
        let appID = try AppID(app)
        var listeners: [FaultListener] = []
        for _ in 0..<min(jobs, cases.count) { listeners.append(try await FaultListener(host: Self.host)) }
        let record = try record(of: appID, in: folder, listeners)
        let report = Locked(ConformanceReport(cases, output))
        try await EmbeddedService.run(
            in: folder, app: record, providers: DemoProviders(), protection: .unlimited
        ) { [listeners] embedded in
            let transport = PooledTransport(concurrency: 64)
            try await closing(transport.shutdown) {
                let credential = try await embedded.service.credentials.create(
                    name: "backend", role: .service, scope: .apps([appID]), bodies: .whole, life: 86_400,
                    actor: "conformance")
                let service = ClientStage.Service(
                    url: embedded.addresses.publicURL, credential: credential.text.exposed, transport: transport)
                let run = ClientRun(
                    command: command, appID: appID, authority: authorityFile(in: folder), folder: folder,
                    host: Self.host, service: service,
                    limit: .seconds(timeout))
                try await run.play(cases, at: listeners) { item, result in
                    try report.withLock { try $0.tell(item, result) }
                }
            }
        }
        try report.withLock { try $0.end() }
    }

    private func authorityFile(in folder: String) -> String { authority ?? AuthorityOptions(in: folder).authority }

    /// The record of the app, which accepts development mode, simulated phones, and scheme 2 at every listener.
    private func record(
        of appID: AppID, in folder: String, _ listeners: [FaultListener]
    ) throws -> AppRecord {
        var authorities = AuthorityOptions()
        authorities.authority = authorityFile(in: folder)
        var record = try AppRecord(
            JSONFields(.object(AppsCommand.Example.record(app: appID, authorities, allowsDevelopment: true))))
        record.android?.keyAttestation.statusList = folder + "/revoked-keys.json"
        record.signature.authorities = listeners.map { "http://\(Self.host):\($0.port)" }
        return record
    }

    private static let host = "127.0.0.1"
}
