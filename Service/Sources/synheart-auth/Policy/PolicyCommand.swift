import ArgumentParser

/// The commands for app records that are not in effect yet.
struct PolicyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy", abstract: "Say what another app record would decide.",
        discussion: """
              synheart-auth apps show com.example.app --json > app.json
              synheart-auth policy what-if --app app.json
            """,
        subcommands: [WhatIfCommand.self])
}
