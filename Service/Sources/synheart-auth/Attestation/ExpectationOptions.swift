import ArgumentParser
import AuthContract
import AuthService
import StrictJSON
import Verification

/// The expected values for one object.
struct ExpectationOptions: ParsableArguments {
    @Option(name: .customLong("app-id"), help: "Apple: team id and bundle id.") var appID: String?
    @Option(name: .customLong("key-id"), help: "Apple: the key id, base64.") var keyID: String?
    @Option(help: "The challenge, base64: hashed for Apple; compared as it is for a key attestation.")
    var challenge: String?
    @Option(
        name: .customLong("client-data"),
        help: "Apple: a file with the client data, which is hashed: instead of --challenge.")
    var clientData: String?
    @Option(
        name: .customLong("client-data-hash"),
        help:
            "Apple: the clientDataHash itself, base64: instead of --challenge. For a receipt, that of its attestation."
    )
    var clientDataHash: String?
    @Option(
        name: .customLong("expected-challenge"),
        help: """
            Assertions: the challenge that you issued, as text. The client data must be this text, or a JSON object with it as \
            the member challenge.
            """)
    var expectedChallenge: String?
    @Option(
        name: .customLong("challenge-member"),
        help: "With --expected-challenge: the name of the JSON member with the challenge, if it is another.")
    var challengeMember: String?
    @Option(help: "Attestations and receipts of Apple: production or development.") var environment: String?
    @Option(
        name: .customLong("public-key"),
        help: "The attested key: SubjectPublicKeyInfo or the X9.63 point of 65 bytes, in base64.")
    var publicKey: String?
    @Option(
        name: .customLong("public-key-file"),
        help: "A file with the attested key: PEM, DER, the point, or base64 as for --public-key.")
    var publicKeyFile: String?
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

    func validate() throws {
        guard [challenge, clientData, clientDataHash].count(where: { $0 != nil }) <= 1 else {
            throw ValidationError("give one of --challenge, --client-data and --client-data-hash")
        }
        guard publicKey == nil || publicKeyFile == nil else {
            throw ValidationError("give one of --public-key and --public-key-file")
        }
        guard let expectedChallenge else {
            guard challengeMember == nil else { throw ValidationError("--challenge-member needs --expected-challenge") }
            return
        }
        guard !expectedChallenge.isEmpty else {
            throw ValidationError("--expected-challenge is empty: give the challenge that you issued")
        }
        guard challenge != nil || clientData != nil else {
            throw ValidationError(
                "--expected-challenge is looked up in the client data: give it with --client-data FILE; a hash does not show it"
            )
        }
    }

    /// The options that were given, each with the formats that it applies to. `verify` refuses an option for another format or with
    /// `--batch`, because the check that the option asks for would not be made.
    var limited: [(option: String, formats: [EvidenceFormat])] {
        let apple: [EvidenceFormat] = [.attestation, .assertion, .receipt]
        let android: [EvidenceFormat] = [.keyAttestation, .playIntegrity]
        let withKey: [EvidenceFormat] = [.assertion, .receipt, .keyAttestation]
        let options: [(isGiven: Bool, option: String, formats: [EvidenceFormat])] = [
            (appID != nil, "--app-id", apple), (keyID != nil, "--key-id", [.attestation]),
            (challenge != nil, "--challenge", [.attestation, .assertion, .keyAttestation]),
            (clientData != nil, "--client-data", [.attestation, .assertion]),
            (clientDataHash != nil, "--client-data-hash", apple),
            (expectedChallenge != nil, "--expected-challenge", [.assertion]),
            (environment != nil, "--environment", [.attestation, .receipt]),
            (publicKey != nil, "--public-key", withKey), (publicKeyFile != nil, "--public-key-file", withKey),
            (previousCounter != nil, "--previous-counter", [.assertion]),
            (attestedExtensions, "--attested-extensions", [.assertion]),
            (package != nil, "--package", android), (nonce != nil, "--nonce", [.playIntegrity]),
            // An assertion has no time to compare, but `--at` is allowed for it too.
            (at != nil, "--at", EvidenceFormat.allCases),
        ]
        return options.filter(\.isGiven).map { ($0.option, $0.formats) }
    }

    /// The error text for an option whose member of the input line cannot be read.
    static func problem(_ error: JSONError) -> String {
        switch error.path {
        case "client_data": "--challenge: expected base64"
        case "client_data_hash", "client_hash_b64": "--client-data-hash: expected base64"
        case "environment": "--environment: expected production or development"
        case "previous_counter": "--previous-counter: expected a number from 0 to 4294967295"
        case "valid_at", "evaluate_at": "--at: expected a time such as 2026-04-21T18:13:12Z"
        default: "\(error)"
        }
    }

    /// The key that the options give; nil: they give none.
    func givenKey() throws -> DevicePublicKey? {
        if let publicKey { return try DevicePublicKey(given: Array(publicKey.utf8), by: "--public-key") }
        return try publicKeyFile.map { path in
            try DevicePublicKey(given: try InputFile.bytes(path, maximum: 1 << 16), by: path)
        }
    }

    private func hexadecimalChallenge() throws(CommandFailure) -> String? {
        guard let challenge else { return nil }
        guard let bytes = Base64.standard.decode(challenge) else {
            throw CommandFailure(.impossible, "--challenge: expected padded standard base64")
        }
        return Hexadecimal.encode(bytes)
    }

    /// The object with these options, as an input line of a batch.
    func line(_ format: EvidenceFormat, _ evidence: AttestationFile, _ key: DevicePublicKey?) throws -> JSONObject {
        let isKeyAttestation = format == .keyAttestation
        var clientData = isKeyAttestation ? nil : challenge
        if let path = self.clientData {
            clientData = Base64.standard.encode(try InputFile.bytes(path, maximum: 1 << 20))
        }
        let hexadecimalChallenge = try isKeyAttestation ? hexadecimalChallenge() : nil
        let time = at ?? SystemClock().now.iso8601
        let members: [(String, String?)] = [
            ("format", format.rawValue), ("app_id", appID), ("key_id", keyID), ("environment", environment),
            ("client_data", clientData), ("challenge_hex", hexadecimalChallenge),
            (format == .receipt ? "client_hash_b64" : "client_data_hash", clientDataHash),
            ("expected_challenge", expectedChallenge),
            ("challenge_member", challengeMember),
            ("public_key_x963", isKeyAttestation ? nil : key.map { Base64.standard.encode($0.x963) }),
            ("public_key_spki", isKeyAttestation ? key?.base64 : nil), ("package", package),
            ("nonce", nonce), ("valid_at", time), ("evaluate_at", time),
        ]
        var object = JSONObject(evidence.members(of: format))
        for (name, value) in members { object[name] = value.map { .string($0) } }
        object["attested_extensions"] = attestedExtensions ? true : nil
        object["previous_counter"] = previousCounter.map { .integer($0) }
        return object
    }
}
