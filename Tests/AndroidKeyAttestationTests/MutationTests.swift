import Bytes
import Crypto
import Foundation
import LenientDER
import StrictJSON
import Testing

@testable import AndroidKeyAttestation

@Suite("Changed chains")
struct MutationTests {
    private static let names = ["Pixel 4", "caiman-sdk36-TEE_EC_RKP", "root-omitted-ec2026"]

    /// The distance between flipped bits: 1 with `KEY_ATTESTATION_EVERY_BIT=1`, as in CI; 211 otherwise.
    private static var stride: Int {
        ProcessInfo.processInfo.environment["KEY_ATTESTATION_EVERY_BIT"] == nil ? 211 : 1
    }

    @Test("no bit of what is signed can be flipped", arguments: names)
    func flippedBits(name: String) throws {
        let vector = try Vectors.chain(name)
        let encodings = try vector.encodings()
        let verifier = try KeyAttestationVerifier.audit()
        #expect(throws: Never.self) {
            try verifier.findings(of: KeyAttestationChain(der: encodings), at: nil)
        }
        var flipped = 0
        for (index, encoded) in encodings.enumerated() {
            let signed = try AttestationCertificate(der: encoded).signedBytes
            for bit in Swift.stride(from: signed.startIndex * 8, to: signed.endIndex * 8, by: Self.stride) {
                var changed = encodings
                changed[index][bit / 8] ^= 0x80 >> UInt8(bit % 8)
                let outcome = try? KeyAttestationChain(der: changed)
                let accepted = outcome.flatMap {
                    try? verifier.findings(of: $0, at: nil)
                }
                if accepted != nil { Issue.record("bit \(bit) of certificate \(index)") }
                flipped += 1
            }
        }
        #expect(flipped > 50)
    }

    @Test("certificates cut short or changed anywhere never do more than fail", arguments: ["Pixel 3 XL-strongbox"])
    func robustness(name: String) throws {
        let encoded = try #require(try Vectors.chain(name).encodings().first)
        for length in Swift.stride(from: 0, to: encoded.count, by: 7) {
            #expect(throws: DERError.self) { try AttestationCertificate(der: Array(encoded.prefix(length))) }
        }
        for index in encoded.indices {
            for octet: UInt8 in [0x00, 0x80, 0xFF] {
                var changed = encoded
                changed[index] = octet
                _ = (try? KeyAttestationChain(der: [changed]))?.quirks
            }
        }
    }

    @Test(
        "texts that are no PEM of certificates",
        arguments: [
            "", "x", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ])
    func noPEM(text: String) {
        #expect(refusal { _ = try KeyAttestationChain(pem: text) } == .chainUnreadable)
    }

    @Test("PEM with text around it, and with the line ends of other systems")
    func windowsPEM() throws {
        let vector = try Vectors.chain("Pixel 4")
        let text = "subject: something\r\n" + vector.pem.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(try KeyAttestationChain(pem: text).certificates.count == 4)
    }
}

@Suite("Wycheproof")
struct WycheproofTests {
    /// Most intermediate keys of genuine chains are on P-384.
    @Test("ECDSA on P-384 with SHA-384, through the code that verifies certificates")
    func p384() throws {
        let groups = try #require(
            try JSONFields(Vectors.json("ecdsa_secp384r1_sha384_test.json")).optionalArray("testGroups"))
        var count = 0
        for group in try groups.map({ try JSONFields($0) }) {
            let spki = octets(try group.string("publicKeyDer"))
            let key = CertificateKey(subjectPublicKeyInfo: try DERNode(parsing: spki))
            for test in try #require(try group.optionalArray("tests")).map({ try JSONFields($0) }) {
                let id = try test.integer("tcId")
                let isValid =
                    try key?.isValidSignature(
                        octets(test.string("sig"))[...], over: octets(test.string("msg"))[...], hash: .sha384) ?? false
                let isExpected = try test.string("result") == "valid"
                #expect(isValid == isExpected, "test \(id)")
                count += 1
            }
        }
        #expect(count == 504)
    }
}

@Suite("Policies as JSON")
struct PolicyJSONTests {
    private func policy(_ text: String) throws -> KeyAttestationPolicy {
        try KeyAttestationPolicy.audit.applying(JSONFields(JSONValue(parsing: text)), ignoring: ["status_list"])
    }

    @Test("absent keeps, null is not checked")
    func nulls() throws {
        #expect(try policy("{}") == .audit)
        let open = try policy(
            """
            {"minimum_security_level": null, "require_equal_levels": null, "boot_states": null, "purposes": null,
             "algorithms": null, "maximum_patch_age_days": null, "dates": null, "boot_keys": null}
            """)
        #expect(open.minimumSecurityLevel == nil && open.bootStates == nil && !open.requiresEqualLevels)
        #expect(open.dates == .ignore)
    }

    @Test("every member is read")
    func members() throws {
        let digest = String(repeating: "ab", count: 32)
        let read = try policy(
            """
            {"minimum_security_level": "StrongBox", "require_equal_levels": false, "boot_states": ["Verified", "SelfSigned"],
             "purposes": ["SIGN", "VERIFY"], "algorithms": ["EC"], "maximum_patch_age_days": 365, "dates": "enforce",
             "boot_keys": ["\(digest)"], "packages": ["a.b"], "certificate_digests": ["\(digest)",
             "-2AMDOS0HZpZowxPbSqjXBQeD8dMh5Vlp11F3ZEJbz4"], "require_chained_names": true, "status_list": null,
             "note": "for people"}
            """)
        #expect(read.minimumSecurityLevel == .strongBox)
        #expect(read.bootStates == [.verified, .selfSigned])
        #expect(read.purposes == .signing)
        #expect(read.algorithms == [3])
        #expect(read.maximumPatchAgeDays == 365)
        #expect(read.dates == .enforce)
        #expect(read.bootKeys == [Array(repeating: 0xAB, count: 32)])
        #expect(read.certificateDigests?.count == 2)
    }

    @Test("a patch age is 0 to 36,500 days, and a digest is hexadecimal or base64url with or without padding")
    func edges() throws {
        #expect(try policy(#"{"maximum_patch_age_days": 0}"#).maximumPatchAgeDays == 0)
        #expect(try policy(#"{"maximum_patch_age_days": 36500}"#).maximumPatchAgeDays == 36_500)
        let zeros = Set([[UInt8](repeating: 0, count: 32)])
        for text in [
            String(repeating: "0", count: 64), String(repeating: "A", count: 43),
            String(repeating: "A", count: 43) + "=",
        ] {
            #expect(try policy(#"{"boot_keys": ["\#(text)"]}"#).bootKeys == zeros)
        }
    }

    @Test(
        "a policy that is not understood is an error that names the member",
        arguments: [
            (#"{"minimum_security_level": "strongbox"}"#, "minimum_security_level"),
            (#"{"minimum_security_level": 1}"#, "minimum_security_level"),
            (#"{"boot_states": "Verified"}"#, "boot_states"),
            (#"{"boot_states": ["Green"]}"#, "boot_states"), (#"{"purposes": ["SIGN", "FLY"]}"#, "purposes"),
            (#"{"dates": "sometimes"}"#, "dates"), (#"{"maximum_patch_age_days": "90"}"#, "maximum_patch_age_days"),
            (#"{"maximum_patch_age_days": -1}"#, "maximum_patch_age_days"),
            (#"{"security_level": null}"#, "security_level"),
            (#"{"certificate_digests": ["ab"]}"#, "certificate_digests"),
            (#"{"maximum_patch_age_days": 36501}"#, "maximum_patch_age_days"),
            // With padding, the base64 of 31 bytes has the same length as that of 32.
            (#"{"boot_keys": ["\#(String(repeating: "A", count: 42))=="]}"#, "boot_keys"),
            (#"{"boot_keys": ["\#(String(repeating: "A", count: 42))"]}"#, "boot_keys"),
            (#"{"boot_keys": ["\#(String(repeating: "A", count: 44))"]}"#, "boot_keys"),
            (#"{"boot_keys": ["\#(String(repeating: "ag", count: 32))"]}"#, "boot_keys"),
        ])
    func oddPolicies(text: String, path: String) throws {
        do {
            _ = try policy(text)
            Issue.record("accepted")
        } catch let error as JSONError {
            #expect(error.path == path)
        }
    }

    @Test("an app record weakens no check: null keeps, and members of audits are unknown")
    func appRecords() throws {
        let base = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [])
        func read(_ text: String) throws -> KeyAttestationPolicy {
            try base.applying(appRecord: JSONFields(JSONValue(parsing: text)), ignoring: ["status_list"])
        }
        let nulls = #"{"minimum_security_level": null, "boot_states": null, "boot_keys": null, "status_list": "none"}"#
        #expect(try read(nulls) == base)
        let strict = try read(#"{"minimum_security_level": "StrongBox", "maximum_patch_age_days": 1}"#)
        #expect(strict.minimumSecurityLevel == .strongBox && strict.maximumPatchAgeDays == 1)
        #expect(try base.applying(appRecord: JSONFields(.object(strict.appRecordJSON))) == strict)
        for text in [
            #"{"minimum_security_level": "Software"}"#, #"{"boot_states": []}"#, #"{"boot_states": ["Unverified"]}"#,
            #"{"maximum_patch_age_days": 0}"#, #"{"dates": "ignore"}"#, #"{"purposes": []}"#, #"{"note": ""}"#,
        ] {
            #expect(throws: JSONError.self, "\(text)") { try read(text) }
        }
    }

    @Test("every member of an audit is read back as it was written")
    func writing() throws {
        let policies = [
            KeyAttestationPolicy.audit,
            KeyAttestationPolicy(packages: ["a.b"], certificateDigests: [[UInt8](repeating: 1, count: 32)]),
        ]
        for policy in policies {
            var other = KeyAttestationPolicy.audit
            other.minimumSecurityLevel = .strongBox
            #expect(try other.applying(JSONFields(.object(policy.json))) == policy)
        }
    }
}
