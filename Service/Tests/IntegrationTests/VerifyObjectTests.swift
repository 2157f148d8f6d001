import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing

/// `attestation verify` of one object, with the keys, files and challenges that servers store.
@Suite struct `Verifying one object` {
    let folder: TemporaryFolder
    private let app = "35MFYY2JY5.co.chiff.attestation-test"
    private let attestation: JSONObject
    private let assertion: JSONObject
    private let key: P256.Signing.PublicKey

    /// Writes the files of an attestation that Apple issued, and of an assertion by the same key.
    init() throws {
        folder = try TemporaryFolder()
        attestation = try Self.vector("Sofianel5__onchain-appattest/attestation-155a5716a92e")
        assertion = try Self.vector("Sofianel5__onchain-appattest/assertion-1859adb1414c")
        key = try P256.Signing.PublicKey(x963Representation: try Self.bytes(assertion, "public_key_x963"))
        try write("object.bin", try Self.bytes(attestation, "object"))
        try write("assertion.bin", try Self.bytes(assertion, "object"))
        try write("client-data", try Self.bytes(assertion, "client_data"))
    }

    /// The test vector with this name, from a file of real objects. Each line of the file is one vector.
    private static func vector(
        _ name: String, of file: String = "AppAttestTests/Vectors/vectors.jsonl"
    ) throws -> JSONObject {
        let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Tests/\(file)")
        let lines = try Data(contentsOf: url).split(separator: UInt8(ascii: "\n"))
        let line = try #require(lines.first { $0.range(of: Data(#""name": "\#(name)""#.utf8)) != nil })
        return try #require(try JSONValue(parsing: line).object)
    }

    private static func bytes(_ vector: JSONObject, _ member: String) throws -> [UInt8] {
        try #require(vector[member]?.string.flatMap { Base64.standard.decode($0) })
    }

    private func write(_ name: String, _ bytes: some Sequence<UInt8>) throws {
        try Data(bytes).write(to: folder.url.appendingPathComponent(name))
    }

    private func verify(_ arguments: [String]) async throws -> Binary.Result {
        try await Binary.run(["attestation", "verify"] + arguments, in: folder.url)
    }

    private func verifyAttestation(
        challenge: String = "attestation-test", _ more: String...
    ) async throws -> Binary.Result {
        let keyID = try #require(attestation["key_id"]?.string)
        return try await verify(
            [
                "object.bin", "--app-id", app, "--environment", "development", "--key-id", keyID, "--challenge",
                Data(challenge.utf8).base64EncodedString(), "--at", "2021-04-15T09:55:20Z",
            ] + more)
    }

    private var point: String { Base64.standard.encode(key.x963Representation) }

    /// Verifies the assertion with its public key, or with the options in `key`.
    private func verifyAssertion(
        key: [String]? = nil, counter: Int = 2, _ more: String...
    ) async throws -> Binary.Result {
        try await verify(
            ["assertion.bin", "--app-id", app, "--previous-counter", String(counter)]
                + (key ?? ["--public-key", point])
                + more)
    }

    private func json(_ result: Binary.Result) throws -> JSONObject {
        try #require(try JSONValue(parsing: result.output).object)
    }

    // MARK: What a server stores

    @Test func `a verified attestation prints its key as thumbprint, DER and PEM`() async throws {
        let result = try await verifyAttestation("--json")
        #expect(result.status == 0, "\(result.errors)")
        let printed = try #require(try json(result)["public_key"]?.object)
        #expect(printed.members.map(\.name) == ["thumbprint", "der", "pem"])
        let pem = try #require(printed["pem"]?.string)
        #expect(try P256.Signing.PublicKey(pemRepresentation: pem).x963Representation == key.x963Representation)
        #expect(printed["der"]?.string == key.derRepresentation.base64EncodedString())
        let (x, y) = (key.rawRepresentation.prefix(32), key.rawRepresentation.suffix(32))
        let jwk = #"{"crv":"P-256","kty":"EC","x":"\#(Base64.url.encode(x))","y":"\#(Base64.url.encode(y))"}"#
        #expect(printed["thumbprint"]?.string == Base64.url.encode(SHA256.hash(data: Data(jwk.utf8))))
        // Without `--json`, the output shows the checks first, and then the same values.
        let lines = try await verifyAttestation().output
        #expect(
            lines.hasSuffix(
                "\ncounter     0\nthumbprint  \(printed["thumbprint"]?.string ?? "")\nder         "
                    + "\(printed["der"]?.string ?? "")\n\(pem)"), "\(lines)")
    }

    @Test func `a verified attestation gives its receipt`() async throws {
        let result = try await verifyAttestation("--save-receipt", folder.path("receipt.bin"))
        #expect(result.status == 0, "\(result.errors)")
        let receipt = try Self.bytes(try Self.vector("Sofianel5__onchain-appattest/receipt-9ae349cc54c6"), "object")
        #expect(try Data(contentsOf: folder.url.appendingPathComponent("receipt.bin")) == Data(receipt))
    }

    @Test func `a refused attestation gives no key and no receipt`() async throws {
        let file = folder.path("receipt.bin")
        let result = try await verifyAttestation(challenge: "another", "--save-receipt", file, "--json")
        #expect(result.status == 1)
        let verdict = try json(result)
        #expect(verdict["code"] == "NONCE_MISMATCH" && verdict["public_key"] == .null)
        #expect(!FileManager.default.fileExists(atPath: file))
        let lines = try await verifyAttestation(challenge: "another").output
        #expect(!lines.contains("PUBLIC KEY") && !lines.contains("thumbprint"))
    }

    @Test func `a receipt that cannot be written is an error, and nothing says verified`() async throws {
        let file = folder.path("nowhere/receipt.bin")
        let result = try await verifyAttestation("--save-receipt", file)
        #expect(result.status == 2 && result.output == "")
        #expect(result.errors.hasPrefix("synheart-auth: cannot write \(file): "), "\(result.errors)")
    }

    @Test func `a verified assertion prints the counter to store, and the stored one is refused`() async throws {
        let first = try await verifyAssertion("--client-data", "client-data")
        #expect(first.status == 0, "\(first.errors)")
        #expect(first.output.contains("\ncounter     3\n"), "\(first.output)")
        let again = try await verifyAssertion(counter: 3, "--client-data", "client-data", "--json")
        #expect(again.status == 1)
        #expect(try json(again)["code"] == "COUNTER_NOT_GREATER")
    }

    // MARK: Keys

    @Test func `a public key is read in every form that servers store`() async throws {
        let (der, pem) = (key.derRepresentation, key.pemRepresentation)
        for text in [point, der.base64EncodedString(), Base64.url.encode(der)] {
            let result = try await verifyAssertion(key: ["--public-key", text], "--client-data", "client-data")
            #expect(result.status == 0, "\(text): \(result.errors)")
        }
        let wrapped = der.base64EncodedData(options: [.lineLength64Characters, .endLineWithLineFeed])
        for bytes in [key.x963Representation, der, Data(pem.utf8), wrapped + [0x0A]] {
            try write("key", bytes)
            let result = try await verifyAssertion(key: ["--public-key-file", "key"], "--client-data", "client-data")
            #expect(result.status == 0, "\(bytes.count): \(result.errors)")
        }
        let other = P256.Signing.PrivateKey().publicKey.derRepresentation.base64EncodedString()
        let refused = try await verifyAssertion(key: ["--public-key", other], "--client-data", "client-data", "--json")
        #expect(refused.status == 1)
        #expect(try json(refused)["code"] == "SIGNATURE_INVALID")
    }

    @Test func `a text that is no public key is an error that says what to give`() async throws {
        let form = "expected a P-256 key, as SubjectPublicKeyInfo (91 bytes) or uncompressed point (65 bytes)"
        for (text, reason) in [
            ("", "\(form), in PEM or base64; found 0 bytes"), ("KEY", form),
            (key.compressedRepresentation.base64EncodedString(), "found 33 bytes"),
            (P384.Signing.PrivateKey().publicKey.derRepresentation.base64EncodedString(), "found 120 bytes"),
        ] {
            let result = try await verifyAssertion(key: ["--public-key", text], "--client-data", "client-data")
            #expect(result.status == 2 && result.output == "")
            #expect(result.errors.hasPrefix("synheart-auth: --public-key: "), "\(result.errors)")
            #expect(result.errors.contains(reason), "\(result.errors)")
        }
        for (text, reason) in [
            (P256.Signing.PrivateKey().pemRepresentation, "expected one PEM block PUBLIC KEY, found PRIVATE KEY"),
            (key.pemRepresentation + "\n" + key.pemRepresentation, "found PUBLIC KEY, PUBLIC KEY"),
            ("-----BEGIN PUBLIC KEY-----\n", "found PEM that cannot be read"),
        ] {
            try write("key", text.utf8)
            let result = try await verifyAssertion(key: ["--public-key-file", "key"], "--client-data", "client-data")
            #expect(result.status == 2 && result.output == "")
            #expect(
                result.errors.hasPrefix("synheart-auth: key: ") && result.errors.contains(reason), "\(result.errors)")
        }
        let missing = try await verifyAssertion(key: ["--public-key-file", "none"], "--client-data", "client-data")
        #expect(missing.status == 2 && missing.errors.contains("cannot read none: "), "\(missing.errors)")
    }

    // MARK: Client data

    @Test func `client data comes from a file, as base64 or as its hash`() async throws {
        let bytes = try Self.bytes(assertion, "client_data")
        for options in [
            ["--client-data", "client-data"], ["--challenge", Data(bytes).base64EncodedString()],
            ["--client-data-hash", Data(SHA256.hash(data: bytes)).base64EncodedString()],
        ] {
            let result = try await verifyAssertion(key: ["--public-key", point] + options)
            #expect(result.status == 0, "\(options): \(result.errors)")
        }
        try write("client-data", bytes + [0x0A])
        let changed = try await verifyAssertion("--client-data", "client-data", "--json")
        #expect(changed.status == 1)
        #expect(try json(changed)["code"] == "SIGNATURE_INVALID")
    }

    @Test func `the client data must hold the expected challenge`() async throws {
        for (options, status) in [
            (["assertion-test"], Int32(0)), (["assertion-test", "--challenge-member", "challenge"], 0),
            // A part of the challenge, another member, the whole text, and another text: none equals the challenge.
            (["assertion"], 1), (["assertion-test", "--challenge-member", "nonce"], 1),
            ([#"{"challenge":"assertion-test"}"#], 1), (["another"], 1),
        ] {
            let expected = ["--client-data", "client-data", "--expected-challenge"] + options
            let result = try await verifyAssertion(key: ["--public-key", point, "--json"] + expected)
            #expect(result.status == status, "\(options): \(result.errors)")
            let verdict = try json(result)
            #expect(verdict["code"] == (status == 0 ? .null : "CHALLENGE_MISMATCH"))
            #expect(verdict["checks"]?.array?.last?.object?["check"] == "challenge")
        }
    }

    @Test func `a refused challenge is saved and replayed`() async throws {
        let file = folder.path("refusal.json")
        let refused = try await verifyAssertion(
            "--client-data", "client-data", "--expected-challenge", "another", "--save-recording", file)
        #expect(refused.status == 1)
        let replayed = try await Binary.run(["attestation", "replay", file])
        #expect(replayed.status == 0 && replayed.output.contains("CHALLENGE_MISMATCH"), "\(replayed.output)")
    }

    @Test func `a key attestation is compared with the challenge and the key`() async throws {
        let chain = try Self.vector("ALP-L29", of: "AndroidKeyAttestationTests/Vectors/key-attestation.jsonl")
        try write("chain.pem", Array(try #require(chain["chain_pem"]?.string).utf8))
        let itsKey =
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEkzcfLeU9W3RfMFRUJGDJBsUosL5xweFh4AjWodxjasVXGZn71rNbyHSjWZ1CPcygOHHt6OeCe0TMPG1BCKNfaA=="
        for (challenge, key, code) in [
            ("c2FtcGxl", itsKey, nil), ("c2FtcGxm", itsKey, "CHALLENGE_MISMATCH"),
            ("c2FtcGxl", point, "ATTESTED_KEY_MISMATCH"),
        ] {
            let result = try await verify(["chain.pem", "--challenge", challenge, "--public-key", key, "--json"])
            #expect(result.status == (code == nil ? 0 : 1), "\(result.errors)")
            let verdict = try json(result)
            #expect(verdict["code"] == (code.map { .string($0) } ?? .null))
            #expect(verdict["public_key"]?.object?["der"]?.string == (code == nil ? itsKey : nil))
        }
        // If the challenge cannot be read, the chain must not pass without the comparison.
        let unread = try await verify(["chain.pem", "--challenge", "sample!"])
        #expect(unread.status == 2)
        #expect(unread.errors == "synheart-auth: --challenge: expected padded standard base64\n")
    }

    // MARK: Options that contradict

    @Test func `options that contradict each other are refused`() async throws {
        for options in [
            ["--client-data", "client-data", "--challenge", "Y2g="],
            ["--client-data", "client-data", "--client-data-hash", "Y2g="],
            ["--challenge", "Y2g=", "--client-data-hash", "Y2g="],
            ["--public-key-file", "key"], ["--challenge-member", "nonce", "--client-data", "client-data"],
            ["--expected-challenge", "", "--client-data", "client-data"],
            ["--expected-challenge", "text", "--client-data-hash", "Y2g="], ["--expected-challenge", "text"],
        ] {
            #expect(try await verifyAssertion(key: ["--public-key", point] + options).status == 64, "\(options)")
        }
        for options in [
            ["--client-data", "client-data"], ["--public-key", point], ["--public-key-file", "key"],
            ["--save-receipt", "receipt.bin"], ["--expected-challenge", "text", "--challenge", "Y2g="],
            ["--app-id", app],
            ["--key-id", "Y2g="], ["--client-data-hash", "Y2g="], ["--environment", "production"],
            ["--previous-counter", "1"],
            ["--package", "com.example"], ["--nonce", "n"], ["--at", "1970-01-01T00:00:00Z"],
            ["--format", "play-integrity"],
        ] {
            let result = try await verify(["--batch", "-"] + options)
            #expect(result.status == 64, "\(options)")
            #expect(result.errors.contains("is for one object, not for --batch"), "\(result.errors)")
        }
        for options in [["--batch", "-", "--policy", "-"], ["-", "--client-data", "-"]] {
            let result = try await verify(options)
            #expect(result.status == 64 && result.errors.contains("standard input"), "\(result.errors)")
        }
        let format = try await verify(["object.bin", "--format", "zz"])
        #expect(format.status == 64 && format.errors.contains("play-integrity"), "\(format.errors)")
    }

    @Test func `an option that the format does not use is an error`() async throws {
        let receipt = try await verifyAssertion("--client-data", "client-data", "--save-receipt", "receipt.bin")
        #expect(receipt.status == 2)
        #expect(
            receipt.errors
                == "synheart-auth: --save-receipt is for app-attest-attestation, and assertion.bin is app-attest-assertion\n"
        )
        for option in [
            ["--public-key", point], ["--package", "com.example"], ["--nonce", "n"], ["--previous-counter", "1"],
            ["--attested-extensions"],
        ] {
            let result = try await verify(["object.bin"] + option)
            #expect(result.status == 2 && result.errors.contains("\(option[0]) is for "), "\(result.errors)")
        }
        for option in [["--environment", "production"], ["--key-id", "Y2g="]] {
            let result = try await verify(["assertion.bin"] + option)
            #expect(
                result.status == 2 && result.errors.contains("\(option[0]) is for app-attest-attestation"),
                "\(result.errors)")
        }
    }

    @Test func `an option whose value cannot be read is named`() async throws {
        for option in [
            ["--challenge", "!!"], ["--client-data-hash", "!!"], ["--environment", "moon"], ["--at", "2026-10-09"],
        ] {
            let result = try await verify(["object.bin"] + option)
            #expect(result.status == 2 && result.errors.contains("\(option[0]): expected"), "\(result.errors)")
        }
    }

    @Test func `a receipt is compared with the hash of its attestation, and text forms of an object are read`()
        async throws
    {
        #expect(try await verifyAttestation("--save-receipt", "receipt.bin").status == 0)
        let hash = { (data: String) in Data(SHA256.hash(data: Data(data.utf8))).base64EncodedString() }
        let receipt = ["receipt.bin", "--at", "2021-04-15T09:55:20Z", "--client-data-hash"]
        #expect(try await verify(receipt + [hash("attestation-test")]).status == 0)
        #expect(try await verify(receipt + [hash("other")]).status == 1)
        let bytes = try Self.bytes(attestation, "object")
        for text in ["\u{FEFF}" + Base64.standard.encode(bytes), Base64.url.encode(bytes)] {
            try write("object.bin", Array(text.utf8))
            #expect(try await verifyAttestation().status == 0)
        }
    }
}
