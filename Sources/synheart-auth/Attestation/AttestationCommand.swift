import ArgumentParser

/// Looks into attestations and judges them.
struct AttestationCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attestation", abstract: "Look into attestations and verify them, one or many.",
        subcommands: [])
}
