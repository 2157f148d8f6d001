import AttestationTestKit
import Crypto
import Foundation
import Testing

@testable import AndroidKeyAttestation

/// A simulated Google, a device key that this Google attests, and a service's verifier that trusts this Google's roots.
struct Fixture {
    static let authority = try? GoogleAuthority()
    static let time = Date(timeIntervalSince1970: 1_795_262_400)
    static let challenge = Array("a challenge, given out once".utf8)

    let authority: GoogleAuthority
    let key = P256.Signing.PrivateKey()
    var policy = KeyAttestationPolicy(
        packages: ["com.example.app"], certificateDigests: [Array(repeating: 0x11, count: 32)])
    var statusList: RevocationStatusList?

    init() throws { authority = try #require(Self.authority) }

    func encodings(_ change: (inout KeyAttestationOptions) -> Void = { _ in }) throws -> [[UInt8]] {
        var options = KeyAttestationOptions()
        change(&options)
        return try authority.attest(key.publicKey, challenge: Self.challenge, at: Self.time, options: options)
    }

    func verify(
        _ encodings: [[UInt8]], challenge: [UInt8] = challenge, key: P256.Signing.PublicKey? = nil, at time: Date = time
    ) throws -> VerifiedKeyAttestation {
        let verifier = KeyAttestationVerifier(
            policy: policy, trustAnchors: try KeyAttestationTrustAnchors(pem: authority.rootsPEM()),
            statusList: statusList)
        return try verifier.verify(
            KeyAttestationChain(der: encodings), challenge: challenge, publicKey: key ?? self.key.publicKey, at: time)
    }

    func code(_ change: (inout KeyAttestationOptions) -> Void) throws -> KeyAttestationError.Code? {
        let encodings = try encodings(change)
        return refusal { _ = try verify(encodings) }
    }
}

@Suite("What a service accepts")
struct AcceptanceTests {
    @Test("a signing key on a locked device, from every kind of device")
    func good() throws {
        let fixture = try Fixture()
        let verified = try fixture.verify(fixture.encodings())
        #expect(verified.securityLevel == .trustedEnvironment)
        #expect(verified.provisioning == .factory)
        #expect(verified.anchor.origin == .configured)
        #expect(verified.publicKey?.rawRepresentation == fixture.key.publicKey.rawRepresentation)
        #expect(verified.unchecked == [.revocation])
        #expect(try fixture.verify(fixture.encodings { $0.provisioning = .remote }).provisioning == .remote)
        #expect(try fixture.verify(fixture.encodings { $0 = .strongBox }).isStrongBoxCorroborated)
        #expect(try fixture.code { $0.purposes = [2] } == nil)
    }

    @Test("an RSA root, as Google's factories have")
    func rsaRoot() throws {
        let authority = try GoogleAuthority(factoryRoot: .rsa2048)
        let key = P256.Signing.PrivateKey().publicKey
        let chain = try authority.attest(key, challenge: [1], at: Fixture.time)
        let verifier = KeyAttestationVerifier(
            policy: .audit, trustAnchors: try KeyAttestationTrustAnchors(pem: authority.rootsPEM()), statusList: nil)
        #expect(throws: Never.self) {
            try verifier.verify(KeyAttestationChain(der: chain), challenge: [1], publicKey: key, at: Fixture.time)
        }
    }

    @Test("what provisioning noted is read, and decides nothing")
    func provisioningInfo() throws {
        let fixture = try Fixture()
        let info = try fixture.verify(fixture.encodings { $0 = .remote }).provisioningInfo
        #expect(info?.certificatesIssued == 8)
        #expect(info?.manufacturer == "Example")
        #expect(try fixture.verify(fixture.encodings()).provisioningInfo == nil)
    }

    @Test("oddities of genuine devices: unmarked issuers, BOOLEAN 01, unsorted sets, no root, unknown tags")
    func oddities() throws {
        let fixture = try Fixture()
        let verified = try fixture.verify(
            fixture.encodings {
                $0.areIssuersMarked = false
                $0.criticalOctet = 0x01
                $0.rootOfTrust?.deviceLocked = 0x01
                $0.areSetsUnsorted = true
                $0.isRootOmitted = true
                $0.additionalAuthorizations = [999: [0x05, 0x00]]
                $0.vendorPatchLevel = 202_611
                $0.bootPatchLevel = 0
            })
        let quirks = Set(verified.quirks.map(\.description))
        #expect(
            quirks.isSuperset(of: [
                "cert0:bool-nonDER:critical=01", "cert1:issuer-lacks-keyCertSign",
                "cert1:issuer-not-CA(basicConstraints=False)", "kd:bool-nonDER:deviceLocked=01",
                "kd:set-unsorted:purpose",
                "kd:unknown-tag:hardwareEnforced:999", "kd:vendorPatchLevel-6digits", "kd:bootPatchLevel-odd=0",
            ]))
        #expect(!verified.isRootIncluded)
        #expect(verified.description.hardwareEnforced[999] == .unknown([0x05, 0x00]))
    }
}

@Suite("What a service refuses")
struct RefusalTests {
    @Test("chains that are not Google's")
    func path() throws {
        let fixture = try Fixture()
        #expect(try fixture.code { $0.isRootLookAlike = true } == .untrustedRoot)
        #expect(try fixture.code { $0.brokenSignature = 0 } == .signatureInvalid)
        #expect(try fixture.code { $0.brokenSignature = 1 } == .signatureInvalid)
        #expect(try fixture.code { $0.brokenSignature = 3 } == .signatureInvalid)
        #expect(try fixture.code { $0.brokenIssuerName = 0 } == .issuerNameMismatch)
        #expect(try fixture.code { $0.order = [1, 0, 2, 3] } == .signatureInvalid)
        #expect(try fixture.code { $0.order = [0, 2, 3] } == .signatureInvalid)
        #expect(try fixture.code { $0.order = [] } == .chainUnreadable)
        #expect(try fixture.code { $0.order = [0, 0, 0, 1, 2, 3, 3] } == .chainUnreadable)
        #expect(try fixture.code { $0.order = [0, 0, 1, 2, 3] } == .signatureInvalid)
    }

    @Test("a real chain under another root, and another's chain under Google's")
    func otherRoots() throws {
        let fixture = try Fixture()
        let real = try Vectors.chain("Pixel 4").encodings()
        #expect(refusal { _ = try fixture.verify(real) } == .untrustedRoot)
        let ours = try fixture.encodings()
        #expect(
            refusal {
                _ = try KeyAttestationVerifier.audit().findings(of: KeyAttestationChain(der: ours), at: nil)
            } == .untrustedRoot)
    }

    @Test("a software root stays refused when someone configures it")
    func softwareRoot() throws {
        let anchors = try KeyAttestationTrustAnchors(pem: Vectors.text("roots/google-software-ec-p256.pem"))
        var policy = KeyAttestationPolicy.audit
        policy.minimumSecurityLevel = nil
        let chain = try Vectors.chain("bq Aquaris X with LineageOS-7b1cca").chain()
        let verifier = KeyAttestationVerifier(policy: policy, trustAnchors: anchors, statusList: nil)
        #expect(
            refusal { _ = try verifier.findings(of: chain, at: nil) } == .softwareRoot)
        let withoutRoot = try KeyAttestationChain(der: chain.certificates.dropLast().map(\.encoded))
        #expect(
            refusal { _ = try verifier.findings(of: withoutRoot, at: nil) } == .softwareRoot)
    }

    @Test("an attested key that signs another below itself, with or without a key description of its own")
    func extendedChain() throws {
        let fixture = try Fixture()
        func extended(_ hasKeyDescription: Bool) throws -> KeyAttestationError.Code? {
            try fixture.code {
                $0.extendsBelowLeaf = .init(
                    signedBy: fixture.key.rawRepresentation, hasKeyDescription: hasKeyDescription)
            }
        }
        #expect(try extended(true) == .attestationExtensionRepeated)
        #expect(try extended(false) == .attestationExtensionNotInLeaf)
        #expect(try fixture.code { $0.isKeyDescriptionRepeated = true } == .attestationExtensionRepeated)
        #expect(try fixture.code { $0.hasKeyDescription = false } == .attestationExtensionMissing)
    }

    @Test("dates by kind of provisioning: the leaf's never count, a factory's certificates do not expire")
    func dates() throws {
        let fixture = try Fixture()
        let past = (Fixture.time - 2 * 86_400)...(Fixture.time - 86_400)
        let future = (Fixture.time + 86_400)...(Fixture.time + 2 * 86_400)
        for provisioning in [KeyAttestationOptions.Provisioning.factory, .remote] {
            func code(_ index: Int, _ validity: ClosedRange<Date>) throws -> KeyAttestationError.Code? {
                try fixture.code {
                    $0.provisioning = provisioning
                    $0.validity = [index: validity]
                }
            }
            #expect(try code(0, past) == nil)
            #expect(try code(0, future) == nil)
            #expect(try code(1, future) == .certificateNotYetValid)
            #expect(try code(2, past) == (provisioning == .factory ? nil : .certificateExpired))
        }
        var lenient = fixture
        lenient.policy.dates = .ignore
        #expect(
            try lenient.code {
                $0.provisioning = .remote
                $0.validity = [1: past]
            } == nil)
    }

    @Test("a repeated root does not make an expired, remotely provisioned chain pass as a factory chain")
    func repeatedRoot() throws {
        let fixture = try Fixture()
        let past = (Fixture.time - 2 * 86_400)...(Fixture.time - 86_400)
        func code(_ order: [Int]?, _ validity: [Int: ClosedRange<Date>]) throws -> KeyAttestationError.Code? {
            try fixture.code {
                $0.provisioning = .remoteUnderFactoryRoot
                $0.order = order
                $0.validity = validity
            }
        }
        #expect(try code(nil, [:]) == nil)
        #expect(try code(nil, [1: past]) == .certificateExpired)
        #expect(try code([0, 1, 2, 3, 4, 4], [1: past]) == .rootRepeated)
        #expect(try fixture.code { $0.order = [0, 1, 2, 3, 3] } == .rootRepeated)
    }

    @Test("the same with a real chain under Google's RSA root, whose name looks like a factory's")
    func repeatedRealRoot() throws {
        let chain = try Vectors.chain("caiman-sdk36-TEE_EC_RKP").chain()
        var policy = KeyAttestationPolicy.audit
        policy.dates = .enforce
        let verifier = KeyAttestationVerifier(policy: policy, statusList: nil)
        let later = Date(timeIntervalSince1970: 1_861_920_000)
        func code(_ certificates: [AttestationCertificate]) throws -> KeyAttestationError.Code? {
            let sent = try KeyAttestationChain(der: certificates.map(\.encoded))
            return refusal { _ = try verifier.findings(of: sent, at: later) }
        }
        let root = try #require(chain.certificates.last)
        #expect(!root.subject.values(of: CertificateName.serialNumber).isEmpty)
        #expect(try code(chain.certificates) == .certificateExpired)
        #expect(try code(chain.certificates + [root]) == .rootRepeated)
    }

    @Test("keys of another challenge, another key, another app")
    func binding() throws {
        let fixture = try Fixture()
        let good = try fixture.encodings()
        #expect(refusal { _ = try fixture.verify(good, challenge: Fixture.challenge + [0]) } == .challengeMismatch)
        #expect(refusal { _ = try fixture.verify(good, challenge: []) } == .challengeMismatch)
        let other = P256.Signing.PrivateKey().publicKey
        #expect(refusal { _ = try fixture.verify(good, key: other) } == .attestedKeyMismatch)
        #expect(try fixture.code { $0.packages = [.init("com.example.other")] } == .packageMismatch)
        #expect(try fixture.code { $0.packages = nil } == .applicationMissing)
        // For Swift's `==`, the Kelvin sign and K are equal. Package names are compared by their bytes.
        var kelvin = fixture
        kelvin.policy.packages = ["com.example.Kids"]
        #expect(try kelvin.code { $0.packages = [.init("com.example.Kids")] } == nil)
        #expect(try kelvin.code { $0.packages = [.init("com.example.\u{212A}ids")] } == .packageMismatch)
        #expect(try fixture.code { $0.packages = [.init("com.example.other"), .init("com.example.app")] } == nil)
        #expect(try fixture.code { $0.signatureDigests = [[1]] } == .certificateDigestMismatch)
        #expect(try fixture.code { $0.signatureDigests = [] } == .certificateDigestMismatch)
        #expect(try fixture.code { $0.isOpenToAllApplications = true } == .allApplications)
    }

    @Test("keys that are not in hardware, or of a device that is not in order")
    func device() throws {
        let fixture = try Fixture()
        #expect(try fixture.code { $0.attestationSecurityLevel = 0 } == .securityLevelTooLow)
        #expect(try fixture.code { $0.keyMintSecurityLevel = 0 } == .securityLevelTooLow)
        #expect(try fixture.code { $0.keyMintSecurityLevel = 2 } == .securityLevelsDiffer)
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == .rootOfTrustMissing)
        #expect(try fixture.code { $0.rootOfTrust = nil } == .rootOfTrustMissing)
        #expect(try fixture.code { $0.rootOfTrust?.deviceLocked = 0 } == .deviceUnlocked)
        #expect(try fixture.code { $0.rootOfTrust?.verifiedBootState = 1 } == .bootStateRefused)
        #expect(try fixture.code { $0.rootOfTrust?.verifiedBootState = 2 } == .bootStateRefused)
        #expect(try fixture.code { $0.rootOfTrust?.verifiedBootState = 4 } == .rootOfTrustMissing)
        #expect(try fixture.code { $0.origin = 2 } == .originRefused)
        #expect(try fixture.code { $0.origin = nil } == .originRefused)
        #expect(try fixture.code { $0.algorithm = 1 } == .algorithmRefused)
        for purposes: [Int64] in [[], [3], [2, 7], [2, 3, 1], [0, 1]] {
            #expect(try fixture.code { $0.purposes = purposes } == .purposeRefused)
        }
    }

    @Test("a StrongBox level that only the leaf claims is refused")
    func strongBox() throws {
        var fixture = try Fixture()
        fixture.policy.minimumSecurityLevel = .strongBox
        #expect(try fixture.code { $0 = .strongBox } == nil)
        #expect(
            try fixture.code {
                $0 = .strongBox
                $0.certifiedSecurityLevel = 1
            } == .strongBoxNotCorroborated)
        #expect(try fixture.code { _ in } == .securityLevelTooLow)
        fixture.policy.minimumSecurityLevel = .trustedEnvironment
        let claimed = try fixture.verify(
            fixture.encodings {
                $0 = .strongBox
                $0.certifiedSecurityLevel = 1
            })
        #expect(claimed.securityLevel == .strongBox)
        #expect(claimed.provenSecurityLevel == .trustedEnvironment)
        #expect(try fixture.verify(fixture.encodings { $0 = .strongBox }).provenSecurityLevel == .strongBox)
    }

    @Test("boot keys of one's own: a locked device with a listed key, and no other")
    func bootKeys() throws {
        var fixture = try Fixture()
        fixture.policy.bootKeys = [Array(repeating: 0x77, count: 32)]
        func code(_ key: UInt8, locked: UInt8 = 0xFF) throws -> KeyAttestationError.Code? {
            try fixture.code {
                $0.rootOfTrust?.verifiedBootState = 1
                $0.rootOfTrust?.verifiedBootKey = Array(repeating: key, count: 32)
                $0.rootOfTrust?.deviceLocked = locked
            }
        }
        #expect(try code(0x77) == nil)
        #expect(try code(0x78) == .bootStateRefused)
        #expect(try code(0x77, locked: 0) == .deviceUnlocked)
    }

    @Test("patch levels: the system's must be there and recent, the others count where they can be read")
    func patchLevels() throws {
        var fixture = try Fixture()
        fixture.policy.maximumPatchAgeDays = 90
        #expect(try fixture.code { _ in } == nil)
        #expect(try fixture.code { $0.osPatchLevel = 202_608 } == .patchLevelTooOld)
        #expect(try fixture.code { $0.osPatchLevel = 202_609 } == nil)
        #expect(try fixture.code { $0.osPatchLevel = 202_701 } == nil, "levels of the coming month occur")
        #expect(try fixture.code { $0.osPatchLevel = 0 } == .patchLevelMissing)
        #expect(try fixture.code { $0.osPatchLevel = 202_613 } == .patchLevelMissing)
        #expect(try fixture.code { $0.vendorPatchLevel = 20_260_805 } == .patchLevelTooOld)
        #expect(try fixture.code { $0.bootPatchLevel = 202_608 } == .patchLevelTooOld)
        #expect(try fixture.code { $0.vendorPatchLevel = 0 } == nil)
        #expect(try fixture.code { $0.vendorPatchLevel = 20_261_100 } == nil)
    }

    @Test("key descriptions that cannot be read, and versions to come that can")
    func descriptions() throws {
        let fixture = try Fixture()
        #expect(try fixture.code { $0.keyDescription = [] } == .keyDescriptionMalformed)
        #expect(try fixture.code { $0.keyDescription = [0x30, 0x00] } == .keyDescriptionMalformed)
        #expect(try fixture.code { $0.attestationVersion = 500 } == nil)
        #expect(try fixture.code { $0.attestationVersion = 600 } == nil)
        #expect(try fixture.code { $0.attestationVersion = 0 } == .attestationVersionUnsupported)
        #expect(try fixture.code { $0.attestationSecurityLevel = 3 } == .keyDescriptionMalformed)
    }
}

@Suite("The status list")
struct StatusListTests {
    private func code(_ list: String, serial: [UInt8]) throws -> KeyAttestationError.Code? {
        var fixture = try Fixture()
        fixture.statusList = try RevocationStatusList(parsing: Array(list.utf8))
        return try fixture.code { $0.serialNumbers = [1: serial] }
    }

    @Test("REVOKED, SUSPENDED and unknown statuses refuse a chain")
    func states() throws {
        func list(_ status: String) -> String {
            #"{"entries": {"c35747a084470c3135aeefe2b8d40cd6": {"status": "\#(status)"}}}"#
        }
        let serial = octets("c35747a084470c3135aeefe2b8d40cd6")
        #expect(try code(list("REVOKED"), serial: [0] + serial) == .certificateRevoked)
        #expect(try code(list("SUSPENDED"), serial: [0] + serial) == .certificateSuspended)
        #expect(try code(list("QUARANTINED"), serial: [0] + serial) == .certificateRevoked)
        #expect(try code(list("REVOKED"), serial: [0x35]) == nil)
    }

    @Test("serials are numbers: no padding, no sign octet, no parts of one another")
    func serials() throws {
        let list = #"{"entries": {"2c8cdddfd5e03bf": {"status": "REVOKED"}, "abc": {"status": "REVOKED"}}}"#
        #expect(try code(list, serial: octets("02c8cdddfd5e03bf")) == .certificateRevoked, "an odd number of digits")
        #expect(try code(list, serial: octets("0abc")) == .certificateRevoked)
        #expect(try code(list, serial: octets("00000abc")) == .certificateRevoked, "an INTEGER with needless zeros")
        #expect(try code(list, serial: octets("1abc")) == nil, "a serial that contains another")
        #expect(try code(list, serial: octets("0abc01")) == nil)
    }

    @Test("every certificate counts but the root, also an intermediate")
    func positions() throws {
        var fixture = try Fixture()
        fixture.statusList = try RevocationStatusList(
            parsing: Array(#"{"entries": {"77": {"status": "REVOKED"}}}"#.utf8))
        for index in 0...2 {
            #expect(try fixture.code { $0.serialNumbers = [index: [0x77]] } == .certificateRevoked)
        }
        #expect(try fixture.code { $0.serialNumbers = [3: [0x77]] } == nil)
    }

    @Test("Google's own lists are read")
    func googles() throws {
        #expect(try RevocationStatusList(parsing: Vectors.bytes("status/status-snapshot-2025-01.json")).count > 400)
        let sample = try RevocationStatusList(parsing: Vectors.bytes("status/status-google-test-sample.json"))
        #expect(sample.entry(serialNumber: "CC66E9A93713B6E643B26C15879786F7")?.isSuspension == true)
        #expect(sample.entry(serialNumber: "00cc66e9a93713b6e643b26c15879786f7") != nil)
        #expect(sample.entry(serialNumber: "") == nil)
    }

    @Test(
        "an unreadable status list is refused as a whole",
        arguments: [
            "", "[]", "{}", #"{"entries": []}"#, #"{"entries": {"xyz": {"status": "REVOKED"}}}"#,
            #"{"entries": {"1": {}}}"#, #"{"entries": {"1": "REVOKED"}}"#,
        ])
    func malformed(text: String) {
        #expect(throws: (any Error).self) { try RevocationStatusList(parsing: Array(text.utf8)) }
    }
}
