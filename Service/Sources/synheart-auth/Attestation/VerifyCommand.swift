import ArgumentParser
import AttestationInspection
import AuthContract
import AuthService
import StrictJSON
import Verification

extension AttestationCommand {
    /// Verifies one object or a stream of lines.
    struct VerifyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify", abstract: "Verify one object, or with --batch one a line.",
            discussion: """
                For one object, the output lists each check with its outcome, and for a verified one of App Attest what a server \
                stores: the counter and the attested key as RFC 7638 thumbprint, DER in base64, and PEM. A check whose value is \
                not given is listed as unchecked. Exit code 0: verified; 1: refused; 2: not checked.

                --batch reads JSON lines, each with its `format`, and writes one JSON line for each, in order. Exit code 0: every \
                line was processed, refusals included; 1: a line could not be read, as one of more than 1 MiB; 2: an input or an \
                option's file cannot be used. Standard error says why a line could not be read. This interface is stable.

                  synheart-auth attestation verify object.bin --key-id KEY --challenge Y2g= \\
                      --app-id TEAMID1234.com.example.app --save-receipt receipt.bin
                  synheart-auth attestation verify assertion.bin --public-key-file key.pem \\
                      --app-id TEAMID1234.com.example.app --previous-counter 0 \\
                      --client-data body.json --expected-challenge 5f2c9a
                  synheart-auth attestation verify chain.pem --challenge Y2g= \\
                      --save-recording refusal.json
                  synheart-auth attestation verify --batch lines.jsonl > verdicts.jsonl
                """)

        @Argument(help: "The object: bytes, base64 text, a PEM chain or a token; - is standard input.") var file:
            String?
        @Option(help: "Verify JSON lines from this file; - is standard input.") var batch: String?

        @Option(
            help: """
                The format, if the object does not tell it: app-attest-attestation, app-attest-assertion, app-attest-receipt, \
                android-key-attestation or play-integrity.
                """) var format: String?
        @OptionGroup var expectations: ExpectationOptions

        @Option(help: "Certificates in PEM to trust instead of Apple's and Google's.") var roots: String?
        @Option(name: .customLong("status-list"), help: "Android: the list of revoked keys, JSON.") var statusList:
            String?
        @Option(name: .customLong("play-keys"), help: "Play Integrity: DECRYPTION_KEY and VERIFICATION_KEY, JSON.")
        var playKeys: String?
        @Option(
            help: """
                A policy as JSON: of one kind, or several as ios, key_attestation and play_integrity. It overrides the lines of a \
                batch. For one object, the options above override it. A member of Android's that is null is not checked.
                """) var policy: String?
        @Flag(
            name: .customLong("line-policies"),
            help: "With --batch: a line's own policy, environment and app ids win over --policy.")
        var linePolicies = false
        @Option(
            // The second name is the former one. It still works in all versions 1.x.
            name: [.customLong("save-recording"), .customLong("save-evidence")],
            help: "If the object is refused, write a recording to this file: everything that the refusal depends on.")
        var recording: String?
        @Option(
            name: .customLong("save-receipt"),
            help: "If the attestation is verified, write its receipt to this file: Apple's server takes it in base64.")
        var receipt: String?
        @OptionGroup var output: OutputOptions

        /// The given options that apply only to some formats, each with these formats. `verify` refuses such an option
        /// for another format or with `--batch`.
        private var limited: [(option: String, formats: [EvidenceFormat])] {
            expectations.limited + (receipt == nil ? [] : [("--save-receipt", [.attestation])])
        }

        func validate() throws {
            guard (file == nil) != (batch == nil) else { throw ValidationError("name a file, or --batch FILE") }
            let ofOneObject =
                (recording == nil ? [] : ["--save-recording"]) + (format == nil ? [] : ["--format"])
                + limited.map(\.option)
            if batch != nil, let option = ofOneObject.first {
                throw ValidationError("\(option) is for one object, not for --batch: each line says so itself")
            }
            let files = [
                file, batch, roots, statusList, playKeys, policy, expectations.clientData, expectations.publicKeyFile,
            ]
            guard files.count(where: { $0 == "-" }) <= 1 else {
                throw ValidationError("- is standard input, which only one option can read")
            }
            let formats = EvidenceFormat.allCases.map(\.rawValue)
            if let format, !formats.contains(format) {
                throw ValidationError("--format \(format) is none of \(formats.joined(separator: ", "))")
            }
            guard !linePolicies || batch != nil else { throw ValidationError("--line-policies is for --batch") }
        }

        func run() async throws {
            try await reporting {
                var options = VerificationOptions()
                options.rootsPEM = try roots.map { try InputFile.text($0) }
                options.statusList = try statusList.map { try InputFile.json($0) }
                options.playKeys = try playKeys.map { try InputFile.json($0) }
                options.policy = try policy.map { try InputFile.json($0) }
                // This command builds the line of a single object from its options, so the line is trusted and overrides --policy.
                options.linePoliciesWin = linePolicies || batch == nil
                options.trustsLine = batch == nil
                if let batch { return try verify(lines: batch, options) }
                if let file { try verify(file, options) }
            }
        }

        private func verify(lines path: String, _ options: VerificationOptions) throws {
            var runner = try BatchRunner(options: options, explain: StandardError.print)
            var input = try InputPieces(path)
            func write(_ line: String) throws { try StandardOutput.print(json: line) }
            while let piece = try input.next() { try runner.process(piece, write: write) }
            try runner.finish(write: write)
            if !runner.everyLineWasReadable { throw ExitCode(1) }
        }

        private func verify(_ path: String, _ options: VerificationOptions) throws {
            let evidence = try AttestationFile(path)
            guard let format = format.map(EvidenceFormat.init(rawValue:)) ?? evidence.format else {
                throw CommandFailure(.impossible, "\(path) has no known format: name one with --format")
            }
            let ofAndroid: [(option: String, formats: [EvidenceFormat])] =
                (statusList == nil ? [] : [("--status-list", [.keyAttestation])])
                + (playKeys == nil ? [] : [("--play-keys", [.playIntegrity])])
            for (option, formats) in limited + ofAndroid where !formats.contains(format) {
                let names = formats.map(\.rawValue).joined(separator: ", ")
                throw CommandFailure(.impossible, "\(option) is for \(names), and \(path) is \(format.rawValue)")
            }
            try options.validate()
            let key = try expectations.givenKey()
            let line = try expectations.line(format, evidence, key)
            let verdict: Verdict
            do {
                verdict = try format.verify(try JSONFields(.object(line)), options: options)
            } catch let error as JSONError {
                throw CommandFailure(.impossible, ExpectationOptions.problem(error))
            }
            let isVerified = verdict.outcome == .verified
            if let file = receipt, isVerified, let bytes = EvidenceFormat.receipt(inAttestation: evidence.bytes) {
                try OutputFile.write(bytes, to: file)
            }
            try output.show(verdict, of: format.rawValue, provenBy: isVerified ? key ?? verdict.attestedKey : nil)
            if let path = recording, verdict.outcome == .refused { try save(line, options, to: path) }
            switch verdict.outcome {
            case .verified: return
            case .refused: throw ExitCode(CommandFailure.Kind.refused.rawValue)
            case .couldNotCheck: throw ExitCode(CommandFailure.Kind.impossible.rawValue)
            }
        }

        private func save(_ line: JSONObject, _ options: VerificationOptions, to path: String) throws {
            let about = JSONObject([
                ("occasion", "attestation verify"), ("recorded_at", .string(SystemClock().now.iso8601)),
            ])
            let file = try RecordingFile(of: line, options: options, about: about)
            try OutputFile.write(JSONValue.object(file.json).text(.pretty) + "\n", to: path)
        }
    }
}
