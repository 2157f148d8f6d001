import Bytes
import Crypto
import Foundation
import LenientDER
import StrictJSON
import Testing

@testable import AndroidKeyAttestation
@testable import AttestationTestKit

/// A certificate, written element by element. A test may replace the elements that are properties. No test here checks the
/// certificate's signature.
private struct Draft {
    static let ecdsa = DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, 2]))

    var serialNumber = DERWriter.integer(1)
    var innerAlgorithm = ecdsa
    var outerAlgorithm = ecdsa
    var validity = [time("260101000000Z"), time("270101000000Z")]
    var uniqueIdentifiers: [[UInt8]] = []
    var extensions: [[UInt8]] = []
    /// Additional elements after the last signed field, and after the signature.
    var afterFields: [[UInt8]] = []
    var afterSignature: [[UInt8]] = []

    static func time(_ text: String) -> [UInt8] { DERWriter.element([0x17], Array(text.utf8)) }

    static func fields(of extension: [UInt64], _ value: [UInt8]) -> [[UInt8]] {
        [DERWriter.objectIdentifier(`extension`), DERWriter.octetString(value)]
    }

    func encoded() -> [UInt8] {
        let key = DERWriter.sequence(Self.ecdsa, DERWriter.bitString([4]))
        let name = DERWriter.sequence(of: [])
        let list = extensions.isEmpty ? [] : [DERWriter.explicit(3, DERWriter.sequence(of: extensions))]
        let fields =
            [
                DERWriter.explicit(0, DERWriter.integer(2)), serialNumber, innerAlgorithm, name,
                DERWriter.sequence(of: validity), name, key,
            ] + uniqueIdentifiers + list + afterFields
        return DERWriter.sequence(
            of: [DERWriter.sequence(of: fields), outerAlgorithm, DERWriter.bitString([0])] + afterSignature)
    }

    func read() throws -> AttestationCertificate { try AttestationCertificate(der: encoded()) }

    func error() -> DERError.Code? {
        do {
            _ = try read()
            return nil
        } catch {
            return (error as? DERError)?.code
        }
    }
}

@Suite("Certificates")
struct CertificateTests {
    @Test("a certificate has at most 16 KiB")
    func length() throws {
        func draft(_ padding: Int) -> Draft {
            var draft = Draft()
            draft.extensions = [
                DERWriter.sequence(of: Draft.fields(of: [2, 5, 29, 99], [UInt8](repeating: 0, count: padding)))
            ]
            return draft
        }
        let overhead = draft(16_000).encoded().count - 16_000
        #expect(draft(16_384 - overhead).error() == nil)
        #expect(draft(16_385 - overhead).error() == .tooLarge)
    }

    @Test("nothing follows the signature, the signed fields and the value of an extension")
    func trailingElements() {
        var draft = Draft()
        #expect(draft.error() == nil)
        draft.afterSignature = [DERWriter.null]
        #expect(draft.error() == .trailingBytes)
        draft.afterSignature = []
        draft.afterFields = [DERWriter.null]
        #expect(draft.error() == .trailingBytes)
        draft.afterFields = []
        draft.extensions = [DERWriter.sequence(of: Draft.fields(of: [2, 5, 29, 99], []) + [DERWriter.null])]
        #expect(draft.error() == .trailingBytes)
    }

    @Test("the two names of the signature's algorithm must be the same bytes")
    func twoAlgorithms() {
        var draft = Draft()
        draft.outerAlgorithm = DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, 3]))
        #expect(draft.error() == .invalidContent)
        draft.outerAlgorithm = DERWriter.sequence(
            DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, 2]), DERWriter.null)
        #expect(draft.error() == .invalidContent)
        draft.innerAlgorithm = draft.outerAlgorithm
        #expect(draft.error() == nil)
    }

    @Test("a validity has two times")
    func validity() throws {
        var draft = Draft()
        let certificate = try draft.read()
        #expect(certificate.notBefore == 1_767_225_600 && certificate.notAfter == 1_798_761_600)
        for count in [0, 1, 3] {
            draft.validity = [[UInt8]](repeating: Draft.time("260101000000Z"), count: count)
            #expect(draft.error() == .invalidContent)
        }
    }

    @Test("unique identifiers are skipped where they stand, written as BIT STRING")
    func uniqueIdentifiers() {
        var draft = Draft()
        let (issuer, subject) = (DERWriter.element([0x81], [0, 1]), DERWriter.element([0x82], [0, 1]))
        for accepted in [[issuer], [subject], [issuer, subject]] {
            draft.uniqueIdentifiers = accepted
            #expect(draft.error() == nil)
        }
        for refused in [
            [subject, issuer], [issuer, issuer], [DERWriter.element([0xA1], [])], [DERWriter.element([0xA2], [])],
        ] {
            draft.uniqueIdentifiers = refused
            #expect(draft.error() == .trailingBytes)
        }
    }

    @Test("an extension is critical only where it says so")
    func criticalExtensions() throws {
        var draft = Draft()
        let identifier = DERWriter.objectIdentifier([2, 5, 29, 99])
        draft.extensions = [
            DERWriter.sequence(identifier, DERWriter.octetString([1])),
            DERWriter.sequence(identifier, DERWriter.boolean(octet: 0xFF), DERWriter.octetString([2])),
            DERWriter.sequence(identifier, DERWriter.boolean(octet: 0x00), DERWriter.octetString([3])),
        ]
        let certificate = try draft.read()
        #expect(certificate.extensions.map(\.isCritical) == [false, true, false])
        #expect(certificate.extensions.map { Array($0.value) } == [[1], [2], [3]])
        #expect(certificate.firstExtension(DEROID(2, 5, 29, 99)).map { Array($0.value) } == [1])
    }

    @Test(
        "a serial number is written as the status list writes it",
        arguments: [
            ([0x00], "0"), ([0x01], "1"), ([0x0F], "f"), ([0x10], "10"), ([0x00, 0x80], "80"), ([0x0A, 0x0B], "a0b"),
            ([0x7F, 0x00, 0x01], "7f0001"),
        ] as [([UInt8], String)])
    func serialNumbers(octets: [UInt8], text: String) throws {
        var draft = Draft()
        draft.serialNumber = DERWriter.element([0x02], octets)
        #expect(try draft.read().serialNumber == text)
    }
}

@Suite("Keys that sign certificates")
struct CertificateKeyTests {
    private func key(_ spki: some Sequence<UInt8>) throws -> CertificateKey? {
        CertificateKey(subjectPublicKeyInfo: try DERNode(parsing: Array(spki)))
    }

    /// A public key with a modulus of this many bits. No one has its private key.
    private func rsaKey(bits: Int) throws -> CertificateKey? {
        var modulus = [UInt8](repeating: 0xA5, count: (bits + 7) / 8)
        modulus[0] = bits % 8 == 0 ? 0x80 : 1 << UInt8(bits % 8 - 1)
        let key = DERWriter.sequence(
            DERWriter.element([0x02], (bits % 8 == 0 ? [0] : []) + modulus), DERWriter.integer(65_537))
        return try self.key(
            DERWriter.sequence(
                DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 113_549, 1, 1, 1]), DERWriter.null),
                DERWriter.bitString(key)))
    }

    @Test("RSA keys have 2048 to 4096 bits")
    func rsaSizes() throws {
        for (bits, isAccepted) in [(1024, false), (2048, true), (3072, true), (4096, true), (4097, false)] {
            #expect((try rsaKey(bits: bits) != nil) == isAccepted, "\(bits) bits")
        }
    }

    @Test("keys of P-256 and P-384 sign, others do not")
    func curves() throws {
        if case .p256 = try key(P256.Signing.PrivateKey().publicKey.derRepresentation) {} else { Issue.record("P-256") }
        if case .p384 = try key(P384.Signing.PrivateKey().publicKey.derRepresentation) {} else { Issue.record("P-384") }
        #expect(try key(P521.Signing.PrivateKey().publicKey.derRepresentation) == nil)
        #expect(try key(DERWriter.sequence(of: [])) == nil)
    }

    @Test("an algorithm is an identifier, and NULL at most")
    func algorithms() throws {
        func algorithm(_ elements: [UInt8]..., tag: UInt8 = 0x30) throws -> SignatureAlgorithm? {
            SignatureAlgorithm(try DERNode(parsing: DERWriter.element([tag], elements.flatMap(\.self))))
        }
        func ecdsa(_ last: UInt64) -> [UInt8] { DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, last]) }
        func rsa(_ last: UInt64) -> [UInt8] { DERWriter.objectIdentifier([1, 2, 840, 113_549, 1, 1, last]) }
        for (last, hash) in [(2, .sha256), (3, .sha384), (4, .sha512)] as [(UInt64, SignatureAlgorithm.Hash)] {
            let found = try algorithm(ecdsa(last))
            #expect(found?.scheme == .ecdsa && found?.hash == hash && found?.hasNeedlessParameters == false)
            #expect(try algorithm(ecdsa(last), DERWriter.null)?.hasNeedlessParameters == true)
        }
        for (last, hash) in [(11, .sha256), (12, .sha384), (13, .sha512)] as [(UInt64, SignatureAlgorithm.Hash)] {
            for found in [try algorithm(rsa(last)), try algorithm(rsa(last), DERWriter.null)] {
                #expect(found?.scheme == .rsaPKCS1 && found?.hash == hash && found?.hasNeedlessParameters == false)
            }
        }
        #expect(try algorithm(ecdsa(1)) == nil && algorithm(ecdsa(5)) == nil)
        #expect(try algorithm(rsa(5)) == nil && algorithm(rsa(10)) == nil && algorithm(rsa(14)) == nil)
        #expect(try algorithm(ecdsa(2), DERWriter.integer(0)) == nil)
        #expect(try algorithm(ecdsa(2), DERWriter.null, DERWriter.null) == nil)
        #expect(try algorithm(ecdsa(2), tag: 0x31) == nil)
        #expect(try algorithm() == nil)
    }
}

@Suite("Names of certificates")
struct CertificateNameTests {
    private func name(_ attributes: (arc: UInt64, value: [UInt8])...) throws -> CertificateName {
        CertificateName(
            try DERNode(
                parsing: DERWriter.sequence(
                    of: attributes.map {
                        DERWriter.set(of: [
                            DERWriter.sequence(DERWriter.objectIdentifier([2, 5, 4, $0.arc]), $0.value)
                        ])
                    })))
    }

    @Test("a name is described by its attributes in order, types without a short name by their number")
    func descriptions() throws {
        let text = DERWriter.utf8String("a")
        let arcs: [UInt64] = [3, 5, 10, 12, 6, 7, 8, 11, 42]
        #expect(
            try arcs.map { try name(($0, text)).description } == [
                "CN=a", "serialNumber=a", "O=a", "title=a", "C=a", "L=a", "ST=a", "OU=a", "2.5.4.42=a",
            ])
        #expect(try name((10, text), (3, DERWriter.null)).description == "O=a, CN=?")
        #expect(try name().description == "")
    }

    @Test("an attribute that is repeated or not text has no value")
    func onlyValues() throws {
        let (one, other) = (DERWriter.utf8String("a"), DERWriter.printableString("b"))
        #expect(try name((3, one)).onlyValue(of: CertificateName.commonName) == "a")
        #expect(try name((10, one)).onlyValue(of: CertificateName.commonName) == nil)
        #expect(try name((3, one), (3, other)).onlyValue(of: CertificateName.commonName) == nil)
        #expect(try name((3, one), (3, DERWriter.null)).onlyValue(of: CertificateName.commonName) == nil)
        #expect(try name((3, one), (3, other)).values(of: CertificateName.commonName) == ["a", "b"])
    }

    @Test("an attribute without exactly a type and a value is skipped")
    func oddAttributes() throws {
        let type = DERWriter.objectIdentifier([2, 5, 4, 3])
        for elements in [[type], [type, DERWriter.utf8String("a"), DERWriter.null], [DERWriter.null, type]] {
            let node = try DERNode(
                parsing: DERWriter.sequence(DERWriter.set(of: [DERWriter.sequence(of: elements)])))
            #expect(CertificateName(node).attributes.isEmpty)
        }
    }
}

@Suite("Bounds of what is read")
struct BoundsTests {
    @Test("a chain has one to six certificates")
    func chainLength() throws {
        let encoded = try #require(try Fixture().encodings().first)
        for (count, code) in [(0, .chainUnreadable), (1, nil), (6, nil), (7, .chainUnreadable)]
            as [(Int, KeyAttestationError.Code?)]
        {
            #expect(
                refusal { _ = try KeyAttestationChain(der: [[UInt8]](repeating: encoded, count: count)) } == code)
        }
    }

    @Test("a PEM text of a chain has at most 128 KiB")
    func pemLength() throws {
        let pem = try Vectors.chain("Pixel 4").pem + "\n"
        let padding = 131_072 - pem.utf8.count
        let longest = pem + String(repeating: " ", count: padding)
        #expect(try KeyAttestationChain(pem: longest).certificates.count == 4)
        #expect(refusal { _ = try KeyAttestationChain(pem: longest + " ") } == .chainUnreadable)
    }

    @Test("a status list has at most 8 MiB")
    func statusListLength() {
        let error = #expect(throws: JSONError.self) {
            try RevocationStatusList(parsing: [UInt8](repeating: UInt8(ascii: " "), count: 8 * 1024 * 1024 + 1))
        }
        #expect(error?.code == .tooLarge)
    }

    @Test("a serial of the status list has 1 to 128 hexadecimal digits in ASCII")
    func statusSerials() throws {
        func count(_ serial: String) throws -> Int {
            try RevocationStatusList(parsing: Array(#"{"entries": {"\#(serial)": {"status": "REVOKED"}}}"#.utf8)).count
        }
        #expect(try count(String(repeating: "f", count: 128)) == 1)
        #expect(try count("0") == 1)
        // The last serial number consists of full-width digits of Unicode.
        for serial in ["", String(repeating: "f", count: 129), "0x1", "g", "-1", "\u{FF11}\u{FF12}"] {
            #expect(throws: (any Error).self) { try count(serial) }
        }
        let list = try RevocationStatusList(parsing: Array(#"{"entries": {"00Ab": {"status": "REVOKED"}}}"#.utf8))
        #expect(list.entry(serialNumber: "ab") != nil && list.entry(serialNumber: "0AB") != nil)
        #expect(list.entry(serialNumber: "a") == nil && list.entry(serialNumber: "b0") == nil)
        let zero = try RevocationStatusList(parsing: Array(#"{"entries": {"00": {"status": "SUSPENDED"}}}"#.utf8))
        #expect(zero.entry(serialNumber: "0")?.isSuspension == true)
        #expect(list.entry(serialNumber: "ab")?.isSuspension == false)
    }
}

@Suite("Names and forms in policies")
struct PolicyFormTests {
    private func policy(_ text: String) throws -> KeyAttestationPolicy {
        try KeyAttestationPolicy.audit.applying(JSONFields(JSONValue(parsing: text)))
    }

    @Test("KeyMint's numbers have the names of its HAL")
    func names() {
        #expect(
            KeyMintNames.purposes == [
                0: "ENCRYPT", 1: "DECRYPT", 2: "SIGN", 3: "VERIFY", 4: "DERIVE_KEY", 5: "WRAP_KEY", 6: "AGREE_KEY",
                7: "ATTEST_KEY",
            ])
        let algorithms: [String: Int64] = ["RSA": 1, "EC": 3, "ML_DSA": 4, "AES": 32, "TRIPLE_DES": 33, "HMAC": 128]
        #expect(Dictionary(uniqueKeysWithValues: KeyMintNames.algorithms.map { ($1, $0) }) == algorithms)
        let origins = ["GENERATED", "DERIVED", "IMPORTED", "RESERVED", "SECURELY_IMPORTED"]
        #expect(KeyMintNames.origins.sorted { $0.key < $1.key }.map(\.value) == origins)
        #expect(KeyMintNames.origins.keys.sorted() == [0, 1, 2, 3, 4])
    }

    @Test("purposes and algorithms are names or numbers that have one")
    func numbers() throws {
        #expect(try policy(#"{"algorithms": [1, "EC"]}"#).algorithms == [1, 3])
        #expect(try policy(#"{"purposes": [2, "VERIFY"]}"#).purposes == .signing)
        let other = try policy(#"{"purposes": ["VERIFY"]}"#).purposes
        #expect(other?.required == [] && other?.allowed == [3])
        for text in [
            #"{"algorithms": [2]}"#, #"{"algorithms": ["DSA"]}"#, #"{"purposes": [8]}"#, #"{"purposes": [true]}"#,
        ] {
            #expect(throws: JSONError.self) { try policy(text) }
        }
    }

    @Test("an audit asks for hardware that booted what its maker signed, and for no dates or names")
    func audit() throws {
        let audit = KeyAttestationPolicy.audit
        #expect(audit.minimumSecurityLevel == .trustedEnvironment && audit.bootStates == [.verified])
        #expect(!audit.requiresChainedNames && audit.dates == .ignore && audit.requiresEqualLevels)
        #expect(audit.packages == nil && audit.purposes == nil && audit.algorithms == nil)
        let service = KeyAttestationPolicy(packages: [], certificateDigests: [])
        #expect(service.requiresChainedNames && service.dates == .enforce && service.requiresGeneratedKey)
        #expect(service.purposes == .signing && service.algorithms == [3])
        let open = try service.applying(
            JSONFields(JSONValue(parsing: #"{"require_chained_names": null, "require_equal_levels": null}"#)))
        #expect(!open.requiresChainedNames && !open.requiresEqualLevels)
    }

    @Test("a digest in base64 has the alphabet of URLs and one form of its last character")
    func digests() {
        let text = String(repeating: "A", count: 43)
        #expect(KeyAttestationPolicy.digest(text) == [UInt8](repeating: 0, count: 32))
        #expect(KeyAttestationPolicy.digest("-_" + text.dropFirst(2))?.prefix(2) == [0xFB, 0xF0])
        for character in ["+", "/"] { #expect(KeyAttestationPolicy.digest(character + text.dropFirst()) == nil) }
        #expect(KeyAttestationPolicy.digest(text + "==") == nil)
        #expect(KeyAttestationPolicy.digest("") == nil && KeyAttestationPolicy.digest("=") == nil)
    }

    @Test("only the application properties that the policy names are checked")
    func applications() throws {
        var fixture = try Fixture()
        let (packages, digests) = (fixture.policy.packages, fixture.policy.certificateDigests)
        fixture.policy.packages = nil
        #expect(try fixture.code { _ in } == nil)
        fixture.policy.certificateDigests = [[UInt8](repeating: 0x12, count: 32)]
        #expect(try fixture.code { _ in } == .certificateDigestMismatch)
        (fixture.policy.packages, fixture.policy.certificateDigests) = (packages, nil)
        #expect(try fixture.code { _ in } == nil)
        (fixture.policy.packages, fixture.policy.certificateDigests) = (["com.example.other"], digests)
        #expect(try fixture.code { _ in } == .packageMismatch)
    }

    @Test("the name of a package is UTF-8")
    func packageNames() throws {
        var noted = QuirkCollector()
        let package = DERWriter.sequence(DERWriter.octetString([0x61, 0xFF]), DERWriter.integer(1))
        let application = DERWriter.sequence(DERWriter.set(of: [package]), DERWriter.set(of: []))
        let error = #expect(throws: DERError.self) {
            try AttestationApplicationID(DERNode(parsing: application), noting: &noted)
        }
        #expect(error?.code == .invalidContent)
    }
}
