import ArgumentParser

/// Shows and verifies attestations.
struct AttestationCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attestation", abstract: "Inspect and verify attestations, one or many, and replay refusals.",
        discussion: """
              synheart-auth attestation inspect object.bin
              synheart-auth attestation verify object.bin --key-id KEY --challenge Y2g= \\
                  --app-id TEAMID1234.com.example.app
              synheart-auth attestation verify --batch lines.jsonl > verdicts.jsonl
              synheart-auth attestation replay refusal.json
            """,
        subcommands: [InspectCommand.self, VerifyCommand.self, ReplayCommand.self])
}
