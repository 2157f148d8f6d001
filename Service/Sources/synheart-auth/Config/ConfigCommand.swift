import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// Checks and shows the configuration without starting the service.
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check and show the service's configuration.",
        discussion: """
            Takes the same file, environment and flags as `serve`.

              synheart-auth config check --config /etc/synheart-auth.yaml
              synheart-auth config show --json
            """,
        subcommands: [Check.self, Show.self])

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Say whether `serve` would start with this configuration.",
            discussion: """
                  synheart-auth config check --config /etc/synheart-auth.yaml
                  synheart-auth config check --host 0.0.0.0 --trusted-proxy 10.0.0.0/8
                """)
        @OptionGroup var options: ServiceOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let roots = try await options.checkedConfiguration().addedRoots().all
                for root in roots where !output.json {
                    let state = root.isBuiltIn ? "is built in: remove it" : "is trusted as \(root.label)"
                    try StandardOutput.print(
                        "\(root.use.rawValue): \(root.subject), SHA-256 \(root.thumbprint), \(root.notBefore.iso8601) to \(root.notAfter.iso8601), \(state)"
                            .withoutControls)
                }
                var result = JSONObject([("valid", true)])
                if !roots.isEmpty { result["roots"] = .array(roots.map { .object($0.json) }) }
                try output.done("the configuration is good", result)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show every setting in effect and where it came from; secrets are masked.",
            discussion: """
                  synheart-auth config show
                  synheart-auth config show --config /etc/synheart-auth.yaml --json
                """)
        @OptionGroup var options: ServiceOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let settings = try options.configuration().all
                try output.list(
                    settings.map { setting in
                        JSONObject([
                            ("key", .string(setting.key.rawValue)), ("value", setting.shown),
                            ("origin", .string(setting.origin.description)),
                            ("environment", .string(setting.key.variable)),
                            ("flag", setting.key.flag.map { .string($0) } ?? .null),
                        ])
                    }, columns: ["key", "value", "origin"], empty: "no settings")
            }
        }
    }
}
