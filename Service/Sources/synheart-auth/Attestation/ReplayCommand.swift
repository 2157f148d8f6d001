import ArgumentParser
import AttestationInspection
import StrictJSON
import Verification

extension AttestationCommand {
    /// Repeats the checks of a recorded refusal.
    struct ReplayCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "replay", abstract: "Make the checks of a recorded refusal again, offline.",
            discussion: """
                Accepts the output of `recordings export`, the admin API or `verify --save-recording`. The checks use the \
                recorded policy, roots and time, unless --policy or --at give others.

                  synheart-auth attestation replay refusal.json
                  synheart-auth attestation replay refusal.json --policy lenient.json

                Exit code 0: the recorded outcome, code and step again; 1: another result; 2: the checks were not possible.
                """)

        @Argument(help: "The recording; - is standard input.") var file: String
        @Option(help: "Another policy, JSON, in the form that `verify --policy` takes.") var policy: String?
        @Option(help: "Another time, ISO 8601 such as 2026-04-21T18:13:12Z.") var at: String?
        @Option(
            name: .customLong("play-keys"),
            help:
                "Play Integrity: DECRYPTION_KEY and VERIFICATION_KEY, JSON. Without them the recorded verdict is judged."
        )
        var playKeys: String?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let recording: RecordingFile
                do {
                    recording = try RecordingFile(parsing: try InputFile.bytes(file))
                } catch let error as JSONError {
                    throw CommandFailure(.impossible, "\(file) is no recording: \(error)")
                }
                var changes = RecordingFile.Changes()
                changes.policy = try policy.map { try InputFile.json($0) }
                changes.playKeys = try playKeys.map { try InputFile.json($0) }
                changes.time = at
                let verdict = try recording.replay(changes)
                let isSame = recording.verdict.agrees(with: verdict)
                try show(verdict, beside: recording, isSame)
                guard !isSame else { return }
                let kind: CommandFailure.Kind = verdict.outcome == .couldNotCheck ? .impossible : .refused
                throw ExitCode(kind.rawValue)
            }
        }

        private func show(_ verdict: Verdict, beside recording: RecordingFile, _ isSame: Bool) throws {
            func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
            let recorded = recording.verdict
            try output.show(
                verdict, of: recording.format,
                further: [
                    ("recorded_outcome", .string(recorded.outcome.rawValue)), ("recorded_code", text(recorded.code)),
                    ("recorded_step", text(recorded.step)), ("recorded_at", recording.about["recorded_at"] ?? .null),
                    ("same", .bool(isSame)),
                ])
        }
    }
}
