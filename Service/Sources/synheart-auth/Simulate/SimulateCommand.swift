import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import Logging
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// Puts the load of simulated devices on a service.
struct SimulateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "A fleet of simulated devices as load: latencies, throughput, errors.",
        discussion: """
            Each device is the real SDK with keys in memory, attested by the test kit. All devices register, then send signed \
            requests, and some rotate their keys. Without --url the command starts a service in its own process, so service and \
            load share the machine. A running service needs an app that trusts the test kit, such as that of `apps example`. For \
            more than 150 devices a minute from one address it needs a higher protection.enrolment_per_minute, and for more than \
            five rotations of each device a higher protection.rotation_burst.

              synheart-auth simulate
              synheart-auth simulate --devices 1000 --platform android --requests 20000 \\
                  --concurrency 64
              synheart-auth simulate --operation verify --rate 500 --duration 60 --json

              synheart-auth apps example > app.json
              synheart-auth apps add --file app.json
              synheart-auth simulate --url http://127.0.0.1:8080 --devices 100 \\
                  --platform ios

              synheart-auth simulate --operation verify --bad replay=2 --bad signature=1 \\
                  --expect 'p99<50ms' --expect 'errors<0.1%'

            --bad adds requests that a service must refuse, as a percentage of all requests. A tenth of the devices sends only these. \
            One that is not refused with its code, or for a spent rate, counts as failed.

            --expect is for CI: p50 to p99.99 and max of all requests of the load, or of one operation (verify.p99), in us, ms or s; \
            errors, in percent of all operations or as a number; rate, in requests a second. Where nothing was measured, an \
            expectation does not hold.

            With --rate, latency counts from the time at which a request was due, so that a service that falls behind does not \
            look fast. Ctrl-C ends early with the results so far.

            Exit code 0: every operation finished, or as many as an expectation about errors allows, and every expectation holds; \
            1: not so; 2: the service cannot be reached.
            """)

    @Option(help: "A running auth service; without it, a fresh one inside this process.") var url: String?
    @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
    @OptionGroup var authorities: AuthorityOptions
    @Option(
        help: ArgumentHelp(
            "How the devices are attested: ios, android, development, or mixed.",
            discussion: "mixed: ios and android in turn, without --url also development, which few apps allow."))
    var platform = Platforms.mixed
    @Option(help: "How many devices.") var devices = 100
    @Option(help: "The total number of requests. Default: 20 for each device.") var requests: Int?
    @Option(help: "Seconds for which they send requests, instead of --requests.") var duration: Double?
    @Option(help: "Requests a second. Default: as fast as they are answered.") var rate: Double?
    @Option(help: "The number of concurrent requests or registrations.") var concurrency = 16
    @Option(name: .customLong("rotate-percent"), help: "The percentage of requests that are rotations.")
    var rotatePercent = 1
    @Option(help: "The other requests: status, or verify (what a backend calls for a device's request).")
    var operation = Operation.status
    @Option(
        name: .customLong("credential-file"),
        help: "With --url and --operation verify: a file with a service credential for the app.")
    var credentialFile: String?
    @Option(
        help: ArgumentHelp(
            "Bad requests of a kind, in percent of all; may be repeated.",
            discussion: "Kinds: \(BadTraffic.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "KIND=PERCENT"))
    var bad: [BadShare] = []
    @Option(
        help: ArgumentHelp(
            "What must hold for exit code 0, such as 'p99<50ms'; may be repeated.", valueName: "EXPECTATION"))
    var expect: [ExpectationArgument] = []
    @OptionGroup var output: OutputOptions

    enum Platforms: String, ExpressibleByArgument, CaseIterable { case mixed, ios, android, development }

    enum Operation: String, ExpressibleByArgument, CaseIterable { case status, verify }

    func validate() throws {
        guard 1...100_000 ~= devices else { throw ValidationError("--devices is 1 to 100000") }
        guard 1...1024 ~= concurrency else { throw ValidationError("--concurrency is 1 to 1024") }
        guard 0...100 ~= rotatePercent else { throw ValidationError("--rotate-percent is 0 to 100") }
        guard requests == nil || duration == nil else { throw ValidationError("--requests or --duration, not both") }
        guard 0...1_000_000_000 ~= requests ?? 0 else { throw ValidationError("--requests is 0 to 1000000000") }
        guard 0...86_400 ~= duration ?? 0 else { throw ValidationError("--duration is at most a day, 86400") }
        guard rate.map({ 0.001...1_000_000 ~= $0 }) ?? true else { throw ValidationError("--rate is 0.001 to 1000000") }
        guard url == nil || operation == .status || credentialFile != nil else {
            throw ValidationError("--operation verify with --url needs --credential-file")
        }
        guard Set(bad.map(\.kind)).count == bad.count else { throw ValidationError("--bad names each kind once") }
        guard shares.total <= 100 else { throw ValidationError("the shares of --bad are at most 100 together") }
    }

    func run() async throws {
        try await reporting {
            LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
            let appID = try AppID(app)
            if let url {
                let credential = try credentialFile.map {
                    try InputFile.secret($0, namedBy: "--credential-file").trimmingCharacters(
                        in: .whitespacesAndNewlines)
                }
                return try await run(at: url, appID, credential: credential, authorities)
            }
            try await withFolder(nil, named: "simulate") { folder in
                let authorities = AuthorityOptions(in: folder)
                let record = try AppRecord(
                    JSONFields(.object(AppsCommand.Example.record(app: appID, authorities, allowsDevelopment: true))))
                try await EmbeddedService.run(in: folder, app: record, protection: .unlimited) { embedded in
                    let credential = try await embedded.service.credentials.create(
                        name: "simulate", role: .service, scope: .apps([appID]), life: 7 * 86_400, actor: "simulate"
                    ).text.exposed
                    try await run(at: embedded.addresses.publicURL, appID, credential: credential, authorities)
                }
            }
        }
    }

    private func run(
        at url: String, _ appID: AppID, credential: String?, _ authorities: AuthorityOptions
    ) async throws {
        let transport = PooledTransport(concurrency: concurrency)
        do {
            try await requireService(url, transport)
            let simulation = try await simulate(at: url, appID, credential, authorities, transport)
            try output.json ? output.show(simulation.json) : simulation.show(output)
            await transport.shutdown()
            try simulation.requireExpected()
            let mayFail = expect.contains { $0.expectation.isAboutErrors }
            guard mayFail || simulation.failed == 0 else {
                throw CommandFailure(.refused, "\(simulation.failed) operations did not finish")
            }
        } catch {
            await transport.shutdown()
            throw error
        }
    }

    private var shares: BadShares {
        BadShares(percent: Dictionary(bad.map { ($0.kind, $0.percent) }) { first, _ in first })
    }

    /// The kinds of simulated devices. With `--url`, a mixed fleet has no device in development mode, because the record of
    /// `apps example` does not allow it.
    private var kinds: [Fleet.Kind] {
        switch platform {
        case .mixed: url == nil ? Fleet.Kind.allCases : [.ios, .android]
        case .ios: [.ios]
        case .android: [.android]
        case .development: [.development]
        }
    }

    /// Fails early if no service listens at the URL.
    private func requireService(_ url: String, _ transport: PooledTransport) async throws {
        do {
            _ = try await transport.send(
                TransportRequest(
                    method: Route.keySet.method, url: url + Route.keySet.rawValue, headers: HeaderFields(), body: [],
                    deadline: .seconds(10)))
        } catch { throw CommandFailure(.impossible, "cannot reach \(url): \(error)") }
    }

    private func simulate(
        at url: String, _ appID: AppID, _ credential: String?, _ authorities: AuthorityOptions,
        _ transport: PooledTransport
    ) async throws -> Simulation {
        let fleet = try Fleet(
            Fleet.Settings(
                url: url, appID: appID, count: devices,
                kinds: kinds,
                apple: try authorities.apple(), google: try authorities.google(), concurrency: concurrency),
            transport: transport)
        var simulation = Simulation(
            devices: devices, log: fleet.log, expectations: expect.map(\.expectation), bad: bad.map(\.kind))
        let progress = Progress(fleet.log)
        let load = Fleet.Load(
            end: duration.map { .after(.seconds($0)) } ?? .requests(requests ?? 20 * devices), rate: rate,
            rotationPercent: rotatePercent,
            question: operation == .verify ? .verify(credential: credential ?? "") : .status, bad: shares)
        try await interruptible(by: fleet.stop) {
            simulation.enrolment = await progress.during("registering") { await fleet.enrol() }
            simulation.work = await progress.during("requesting") { await fleet.work(load) }
        }
        return simulation
    }
}

/// A value of `--bad`: a kind of bad request, and its percentage of all requests.
struct BadShare: ExpressibleByArgument {
    let kind: BadTraffic
    let percent: Double

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, let kind = BadTraffic(rawValue: parts[0]), let percent = Double(parts[1]),
            percent > 0, percent <= 100
        else { return nil }
        (self.kind, self.percent) = (kind, percent)
    }
}

/// A value of `--expect`.
struct ExpectationArgument: ExpressibleByArgument {
    let expectation: LoadExpectation

    init?(argument: String) {
        guard let expectation = try? LoadExpectation(argument) else { return nil }
        self.expectation = expectation
    }
}

extension ProtectionSettings {
    /// Rates too high to limit registrations, a device's requests or its rotations. All simulated devices have one address.
    static var unlimited: ProtectionSettings {
        var settings = ProtectionSettings()
        settings.enrolment = Rate(burst: 1e9, perMinute: 1e9)
        settings.device = Rate(burst: 1e9, perMinute: 1e9)
        settings.rotations = Rate(burst: 1e9, perMinute: 1e9)
        return settings
    }
}
