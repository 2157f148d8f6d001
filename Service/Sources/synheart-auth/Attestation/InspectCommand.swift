import ArgumentParser
import AttestationInspection
import StrictJSON
import Verification

extension AttestationCommand {
    /// Prints everything in an object.
    struct InspectCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "inspect",
            abstract: "Print everything in an attestation, assertion or receipt; nothing is verified.",
            discussion: """
                Accepts bytes, base64 text, a PEM chain or a token; - is standard input.

                  synheart-auth attestation inspect object.bin
                  pbpaste | synheart-auth attestation inspect - --json
                """)
        @Argument(help: "The file.") var file: String
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let evidence = try AttestationFile(file)
                guard let (format, value) = ObjectTree.inspect(evidence.bytes) else {
                    let known = EvidenceFormat.allCases.map(\.rawValue).joined(separator: ", ")
                    throw CommandFailure(.refused, "\(file) is none of \(known)")
                }
                guard !output.json else {
                    return try output.show(JSONObject([("format", .string(format.rawValue)), ("object", value)]))
                }
                try StandardOutput.write("\(format.rawValue)\n" + ObjectTree.render(value))
            }
        }
    }
}
