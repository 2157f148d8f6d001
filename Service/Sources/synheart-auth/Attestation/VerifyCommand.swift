import ArgumentParser
import AttestationInspection
import AuthContract
import AuthService
import Foundation
import StrictJSON

extension AttestationCommand {
    /// Verifies one object or a stream of lines.
    struct VerifyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify", abstract: "Verify one object, or with --batch one a line.",
            discussion: """
                For one object, the output lists each check with its outcome. Exit code 0: verified; 1: refused; 2: not checked.

                --batch reads JSON lines, each with its `format`, and writes one JSON line for each, in order. Exit code 0: every
                line was processed, refusals included; 1: a line could not be read. This interface is stable.

                  synheart-auth attestation verify object.bin --app-id TEAMID1234.com.example.app --key-id KEY --challenge Y2g=
                  synheart-auth attestation verify chain.pem --challenge Y2g= --save-evidence refusal.json
                  synheart-auth attestation verify --batch lines.jsonl > verdicts.jsonl
                """)

        @Argument(help: "The object: bytes, base64 text, a PEM chain or a token; - is standard input.") var file:
            String?
        @Option(help: "Verify JSON lines from this file; - is standard input.") var batch: String?

        @Option(help: "The format, if the object does not tell it: app-attest-attestation, play-integrity, …")
        var format: String?
        @Option(name: .customLong("app-id"), help: "Apple: team id and bundle id.") var appID: String?
        @Option(name: .customLong("key-id"), help: "Apple: the key id, base64.") var keyID: String?
        @Option(help: "The challenge, base64: hashed for Apple; compared as it is for a key attestation.")
        var challenge: String?
        @Option(name: .customLong("client-data-hash"), help: "Apple: the clientDataHash itself, base64.")
        var clientDataHash: String?
        @Option(help: "Apple: production or development.") var environment: String?
        @Option(name: .customLong("public-key"), help: "Assertions and receipts: the attested key, X9.63 in base64.")
        var publicKey: String?
        @Option(name: .customLong("previous-counter"), help: "Assertions: the stored counter.")
        var previousCounter: Int64?
        @Flag(
            name: .customLong("attested-extensions"),
            help:
                "Assertions: the attestation of the key carried an extension map. Otherwise the assertion's is unproven."
        )
        var attestedExtensions = false
        @Option(help: "Android: the package.") var package: String?
        @Option(help: "Play Integrity: the nonce or request hash.") var nonce: String?
        @Option(help: "The time of the check, ISO 8601 such as 2026-04-21T18:13:12Z; now where absent.") var at: String?

        @Option(help: "Certificates in PEM to trust instead of Apple's and Google's.") var roots: String?
        @Option(name: .customLong("status-list"), help: "Android: the list of revoked keys, JSON.") var statusList:
            String?
        @Option(name: .customLong("play-keys"), help: "Play Integrity: DECRYPTION_KEY and VERIFICATION_KEY, JSON.")
        var playKeys: String?
        @Option(
            help: """
                A policy as JSON: of one kind, or several as ios, key_attestation and play_integrity. It overrides the lines of a \
                batch. For one object, the options above override it.
                """) var policy: String?
        @Flag(
            name: .customLong("line-policies"),
            help: "With --batch: a line's own policy, environment and app ids win over --policy.")
        var linePolicies = false
        @Option(
            name: .customLong("save-evidence"),
            help: "If the object is refused, write the evidence to this file: everything that the refusal depends on.")
        var evidence: String?
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (file == nil) != (batch == nil) else { throw ValidationError("name a file, or --batch FILE") }
            guard evidence == nil || batch == nil else {
                throw ValidationError("--save-evidence is for one object, not for --batch")
            }
            guard !linePolicies || batch != nil else { throw ValidationError("--line-policies is for --batch") }
            guard !attestedExtensions || batch == nil else {
                throw ValidationError("--attested-extensions is for one object: in a batch, each line says so itself")
            }
        }

        func run() async throws {
            try await reporting {
                var options = VerificationOptions()
                options.rootsPEM = try roots.map { try InputFile.text($0) }
                options.statusList = try statusList.map { try InputFile.json($0) }
                options.playKeys = try playKeys.map { try InputFile.json($0) }
                options.policy = try policy.map { try InputFile.json($0) }
                // For a single object, the line itself is built from the options of this command.
                options.linePoliciesWin = linePolicies || batch == nil
                if let batch { return try verify(lines: batch, options) }
                if let file { try verify(file, options) }
            }
        }

        private func verify(lines path: String, _ options: VerificationOptions) throws {
            var runner = try BatchRunner(options: options)
            var input = try InputPieces(path)
            func write(_ line: String) throws { try StandardOutput.print(json: line) }
            while let piece = try input.next() { try runner.process(piece, write: write) }
            try runner.finish(write: write)
            if !runner.everyLineWasReadable { throw ExitCode(1) }
        }

        private func verify(_ path: String, _ options: VerificationOptions) throws {
            let evidence = try AttestationFile(path)
            guard let name = format ?? evidence.format, let judge = AttestationFormats.named(name) else {
                throw CommandFailure(.impossible, "\(path) has no known format: name one with --format")
            }
            try options.validate()
            let line = line(name, evidence)
            let verdict: AttestationInspection.Verdict
            do {
                verdict = try judge.verify(try JSONFields(.object(line)), options: options)
            } catch let error as JSONError {
                throw CommandFailure(.impossible, "\(error)")
            }
            try output.show(verdict, of: name)
            if let path = self.evidence, verdict.outcome == .refused { try save(line, options, to: path) }
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
            let file = try EvidenceFile(of: line, options: options, about: about)
            try OutputFile.write(JSONValue.object(file.json).text(.pretty) + "\n", to: path)
        }

        /// The input line with the same content as the options.
        private func line(_ format: String, _ evidence: AttestationFile) -> JSONObject {
            let time = at ?? SystemClock().now.iso8601
            let hexadecimalChallenge = challenge.flatMap { Base64.standard.decode($0) }.map { Hexadecimal.encode($0) }
            let members: [(String, String?)] = [
                ("format", format), ("app_id", appID), ("key_id", keyID), ("environment", environment),
                ("client_data", format == "android-key-attestation" ? nil : challenge),
                ("challenge_hex", format == "android-key-attestation" ? hexadecimalChallenge : nil),
                ("client_data_hash", clientDataHash), ("public_key_x963", publicKey), ("package", package),
                ("nonce", nonce), ("valid_at", time), ("evaluate_at", time),
            ]
            var object = JSONObject(evidence.members(of: format))
            for (name, value) in members { object[name] = value.map { .string($0) } }
            object["attested_extensions"] = attestedExtensions ? true : nil
            object["previous_counter"] = previousCounter.map { .integer($0) }
            return object
        }
    }
}
