import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// Checks everything that a service needs, and prints remedies.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check everything that the service needs, and say what to do.",
        discussion: """
            Takes the same file, environment and flags as `serve`, and changes nothing. It asks server.public_origin and each of \
            server.other_origins as a phone would; with --url it also checks whether a running service is ready. The lines `ends` \
            are what ends by itself: credentials, TLS certificates, roots. Exit code 1: a check failed; warnings do not count.

              synheart-auth doctor --config /etc/synheart-auth.yaml
              synheart-auth doctor --url http://127.0.0.1:9464 --json
            """)
    @OptionGroup var options: ServiceOptions
    @Option(help: "A running service's operations listener, such as http://127.0.0.1:9464.") var url: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await reporting {
            let report = await diagnose()
            if output.json {
                try output.show(
                    JSONObject([
                        ("state", .string(report.state.rawValue)),
                        ("checks", .array(report.findings.map { .object($0.json) })),
                    ]))
            } else {
                try show(report)
            }
            if report.state == .fail { throw ExitCode(CommandFailure.Kind.refused.rawValue) }
        }
    }

    private func diagnose() async -> DoctorReport {
        var report = DoctorReport()
        var configuration: ServiceConfiguration?
        do {
            let settings = try options.configuration(for: .inspection)
            _ = try await settings.deviceCheckKey()
            let roots = try settings.addedRoots()
            configuration = settings
            report.ok("configuration", "everything is understood and holds together")
            if settings.isGiven(.appleKeyID), settings.isWithheld(.appleKey) { report.warnWithheld(.appleKey) }
            for root in roots.all { check(root, &report) }
        } catch {
            report.fail("configuration", "\(error)", do: "mend it; `config check` says the same")
            // Even if another setting is invalid, the settings of the store may be valid, so that the store can be checked.
            configuration = try? options.configuration(for: .store)
        }
        guard let configuration else { return report }
        SecretFileChecks(configuration: configuration).run(&report)
        let isServed: Bool?
        if let postgresql = configuration.secret(.postgresql) {
            let checks = ServerStoreChecks(configuration, postgresql: postgresql)
            await checks.run(try? configuration.serviceKey, &report)
            if configuration.isWithheld(.serviceKey) { report.warnWithheld(.serviceKey) }
            // It is unknown whether a node on this machine uses the listeners' addresses.
            isServed = nil
        } else {
            isServed = await StoreChecks(configuration: configuration).run(&report)
        }
        if report.state(of: "configuration") != .fail, let server = try? configuration.server {
            await ListenerChecks(settings: server, isServed: isServed).run(&report)
        }
        report.listEnds()
        if let url { await ServiceChecks(url: url).run(&report) }
        return report
    }

    /// Shows a root that the configuration adds, and warns if it expires soon or is not needed.
    private func check(_ root: AddedRoot, _ report: inout DoctorReport) {
        if !root.isBuiltIn { report.note("the root \(root.subject) of \(root.use.rawValue)", ending: root.notAfter) }
        let what = "\(root.subject), SHA-256 \(root.thumbprint), until \(root.notAfter.iso8601)"
        if root.isBuiltIn {
            report.warn(root.use.rawValue, "\(what): it is built in", do: "remove it from the file")
        } else if root.notAfter - SystemClock().now < 90 * 86_400 {
            report.warn(
                root.use.rawValue, "\(what): it ends soon, and an expired root is not trusted",
                do: "add its successor to the file, or remove it")
        } else {
            report.ok(root.use.rawValue, "\(what): trusted as \(root.label)")
        }
    }

    /// Prints a line for each result, followed by its remedy.
    private func show(_ report: DoctorReport) throws {
        let width = report.findings.map(\.check.count).max() ?? 0
        for finding in report.findings {
            let (state, check) = (finding.state.rawValue.padded(to: 4), finding.check.padded(to: width))
            try StandardOutput.print("\(state)  \(check)  \(finding.message.withoutControls)")
            guard let advice = finding.advice?.withoutControls else { continue }
            try StandardOutput.print("      " + "".padded(to: width) + "  \(advice)")
        }
    }
}
