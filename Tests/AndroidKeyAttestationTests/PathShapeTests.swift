import AttestationTestKit
import Crypto
import Foundation
import StrictJSON
import Testing

@testable import AndroidKeyAttestation

extension Fixture {
    typealias Certificate = KeyAttestationCertificate

    /// A key description that the verifier expects, unless `change` alters its options.
    func description(_ change: (inout KeyAttestationOptions) -> Void = { _ in }) -> [UInt8] {
        var options = KeyAttestationOptions()
        change(&options)
        return GoogleAuthority.keyDescription(challenge: Self.challenge, at: Self.time, options: options)
    }

    /// A leaf for the key that is to be registered.
    func leaf(_ change: (inout KeyAttestationOptions) -> Void = { _ in }) -> Certificate {
        .leaf(.publicKey(key.publicKey), keyDescription: description(change))
    }

    func verify(
        _ path: [Certificate], under root: GoogleAuthority.Root, includesRoot: Bool = true, at time: Date = time
    ) throws -> VerifiedKeyAttestation {
        try verify(authority.sign(path, under: root, includesRoot: includesRoot, at: Self.time), at: time)
    }

    func code(
        _ path: [Certificate], under root: GoogleAuthority.Root, includesRoot: Bool = true, at time: Date = time
    ) throws -> KeyAttestationError.Code? {
        let encodings = try authority.sign(path, under: root, includesRoot: includesRoot, at: Self.time)
        return refusal { _ = try verify(encodings, at: time) }
    }
}

@Suite("Path shape")
struct PathShapeTests {
    private typealias Certificate = KeyAttestationCertificate
    private let fixture: Fixture
    /// A key that an attacker can sign certificates with: a virtual machine's, or an app's attested key.
    private let attackersKey = P256.Signing.PrivateKey()

    init() throws { fixture = try Fixture() }

    private func factory(_ leaf: Certificate, title: String = "TEE") -> [Certificate] {
        [leaf, .factoryAttestation(title: title), .factoryIntermediate]
    }

    private func remote(_ leaf: Certificate, organization: String = "TEE") -> [Certificate] {
        [leaf, .remoteAttestation(organization: organization), .droidCA3, .droidCA2]
    }

    @Test("the shapes that devices send are accepted, with the root and without it", arguments: [true, false])
    func genuineShapes(includesRoot: Bool) throws {
        let leaf = fixture.leaf()
        let made = try fixture.verify(factory(leaf), under: .factory, includesRoot: includesRoot)
        #expect(made.provisioning == .factory && made.isRootIncluded == includesRoot)
        for organization in ["TEE", "StrongBox"] {
            for root in [GoogleAuthority.Root.remote, .factory] {
                let provisioned = try fixture.verify(
                    remote(leaf, organization: organization), under: root, includesRoot: includesRoot)
                #expect(provisioned.provisioning == .remote && provisioned.isRootIncluded == includesRoot)
            }
        }
    }

    @Test(
        "a key that a virtual machine's key signs below itself is refused, with the root and without it",
        arguments: [true, false])
    func virtualMachine(includesRoot: Bool) throws {
        let machine = Certificate(
            [.commonName("Android Protected Virtual Machine Key")], key: .privateKey(attackersKey))
        let authorities = remote(machine, organization: "AVF").dropFirst()
        let forged = [fixture.leaf(), machine] + authorities
        #expect(try fixture.code(forged, under: .remote, includesRoot: includesRoot) == .chainShape)
        // Without the virtual machine's own certificate, the number of certificates is correct, but the organization is wrong.
        let shorter = [fixture.leaf()] + authorities
        #expect(try fixture.code(shorter, under: .remote, includesRoot: includesRoot) == .chainShape)
    }

    @Test(
        "a certificate that an attested key signs below itself is refused, however the chain was provisioned",
        arguments: [true, false])
    func oneCertificateTooMany(includesRoot: Bool) throws {
        let signing = Certificate([.commonName("Android Keystore Key")], key: .privateKey(attackersKey))
        let leaf = fixture.leaf()
        #expect(
            try fixture.code([leaf] + factory(signing), under: .factory, includesRoot: includesRoot) == .chainShape)
        #expect(try fixture.code([leaf] + remote(signing), under: .remote, includesRoot: includesRoot) == .chainShape)
    }

    @Test("a chain with too few certificates is refused, with the root and without it", arguments: [true, false])
    func tooFewCertificates(includesRoot: Bool) throws {
        let leaf = fixture.leaf()
        for (path, root) in [
            ([leaf, .droidCA2], .remote), ([leaf, .droidCA3, .droidCA2], .remote), ([leaf], .remote),
            ([leaf, .factoryIntermediate], .factory), ([leaf], .factory),
        ] as [([Certificate], GoogleAuthority.Root)] {
            #expect(try fixture.code(path, under: root, includesRoot: includesRoot) == .chainShape, "\(path.count)")
        }
    }

    @Test("a chain of unknown kind has the shape of a factory's", arguments: [true, false])
    func unknownKind(includesRoot: Bool) throws {
        let unknown = Certificate([.commonName("Some CA"), .organization("Someone")], key: .factoryIntermediate)
        let attestation = Certificate.factoryAttestation(title: "TEE")
        let extra = Certificate([.commonName("Another CA")], key: .privateKey(attackersKey))
        let leaf = fixture.leaf()
        let verified = try fixture.verify([leaf, attestation, unknown], under: .factory, includesRoot: includesRoot)
        #expect(verified.provisioning == .unknown)
        for path in [[leaf, unknown], [leaf, attestation, extra, unknown]] {
            #expect(try fixture.code(path, under: .factory, includesRoot: includesRoot) == .chainShape)
        }
    }

    @Test("only the exact name of Droid CA2 makes a chain remotely provisioned")
    func nameOfDroidCA2() throws {
        for subject in [
            [.organization("Google LLC"), .commonName("Droid CA3")],
            [.organization("Google"), .commonName("Droid CA2")], [.commonName("Droid CA2")],
            [.organization("Google LLC"), .commonName("Droid CA2"), .commonName("Droid CA2")],
            [.organization("Google LLC"), .organization("Example"), .commonName("Droid CA2")],
        ] as [[Certificate.Attribute]] {
            var path = remote(fixture.leaf())
            path[3].subject = subject
            #expect(try fixture.code(path, under: .remote) == .chainShape)
            path.remove(at: 2)
            path[2].key = .droidCA3
            #expect(try fixture.verify(path, under: .remote).provisioning == .unknown)
        }
    }

    @Test(
        "a remotely provisioned key belongs to a TEE or a StrongBox and to nothing else",
        arguments: ["AVF", "tee", "TEE ", "Strongbox", "", "Google LLC"])
    func organizations(organization: String) throws {
        let path = remote(fixture.leaf(), organization: organization)
        #expect(try fixture.code(path, under: .remote) == .chainShape)
    }

    @Test("an attestation certificate without an organization, or with two, is refused where Google provisions")
    func severalOrganizations() throws {
        for subject in [
            [.commonName("x")], [.title("TEE")], [.organization("TEE"), .organization("AVF")],
            [.organization("TEE"), .organization("TEE")],
        ] as [[Certificate.Attribute]] {
            var path = remote(fixture.leaf())
            path[1].subject = subject
            #expect(try fixture.code(path, under: .remote) == .chainShape)
        }
    }

    @Test("the extension of a virtual machine's key is refused in every certificate", arguments: [true, false])
    func virtualMachineExtension(includesRoot: Bool) throws {
        for (path, root) in [(factory(fixture.leaf()), .factory), (remote(fixture.leaf()), .remote)]
            as [([Certificate], GoogleAuthority.Root)]
        {
            for index in path.indices {
                var marked = path
                marked[index].extensions.append(.virtualMachine)
                #expect(try fixture.code(marked, under: root, includesRoot: includesRoot) == .chainShape)
                // An extension whose identifier differs in the last number is another extension.
                marked[index].extensions[marked[index].extensions.count - 1].identifier[10] = 2
                #expect(try fixture.code(marked, under: root, includesRoot: includesRoot) == nil)
            }
        }
    }

    @Test("the shape is judged after the key description was found, and before dates and revocation")
    func order() throws {
        var path = remote(fixture.leaf(), organization: "AVF")
        path[2].validity = (Fixture.time - 200)...(Fixture.time - 100)
        #expect(try fixture.code(path, under: .remote) == .chainShape)
        path[1].extensions = path[0].extensions
        #expect(try fixture.code(path, under: .remote) == .attestationExtensionRepeated)
        path[0].extensions = []
        #expect(try fixture.code(path, under: .remote) == .attestationExtensionNotInLeaf)
        path[1].extensions = []
        #expect(try fixture.code(path, under: .remote) == .attestationExtensionMissing)
        let error = #expect(throws: KeyAttestationError.self) {
            try fixture.verify(remote(fixture.leaf(), organization: "AVF"), under: .remote)
        }
        #expect(error?.step == .pathShape && error?.code.rawValue == "CHAIN_SHAPE")
    }

    @Test("the shape counts whatever else a policy does not ask")
    func lenientPolicy() throws {
        var lenient = fixture
        lenient.policy = .audit
        lenient.policy.minimumSecurityLevel = nil
        lenient.policy.bootStates = nil
        let path = [fixture.leaf(), .droidCA2] as [Certificate]
        #expect(try lenient.code(path, under: .remote) == .chainShape)
    }

    @Test("real chains keep their outcome without their root, and lose it with one certificate less or more")
    func realChains() throws {
        let verifier = try KeyAttestationVerifier.audit()
        func code(_ encodings: [[UInt8]]) -> KeyAttestationError.Code? {
            refusal {
                _ = try verifier.findings(of: KeyAttestationChain(der: encodings), at: nil)
            }
        }
        var count = 0
        for vector in Vectors.chains.values where vector.isAccepted {
            var encodings = try vector.encodings()
            if !vector.rootLabel.contains("not in chain") { encodings.removeLast() }
            #expect(code(encodings) == nil, "\(vector.name)")
            // Every removed or added certificate is noticed: by a signature, the description, or the shape.
            for index in encodings.indices {
                var shorter = encodings
                shorter.remove(at: index)
                #expect(code(shorter) != nil, "\(vector.name) without \(index)")
                var longer = encodings
                longer.insert(encodings[index], at: index)
                #expect(code(longer) != nil, "\(vector.name) with \(index) twice")
            }
            count += 1
        }
        #expect(count > 50)
    }

    @Test("the real chain of a protected virtual machine's key vouches for nothing")
    func realVirtualMachine() throws {
        let line = try #require(try Vectors.bytes("avf.jsonl").split(separator: UInt8(ascii: "\n")).first)
        let pem = try JSONFields(JSONValue(parsing: line)).string("chain_pem")
        let chain = try KeyAttestationChain(pem: pem)
        let time = Date(timeIntervalSince1970: 1_790_215_380)
        for policy in [KeyAttestationPolicy.audit, KeyAttestationPolicy(packages: [], certificateDigests: [])] {
            let verifier = KeyAttestationVerifier(policy: policy, statusList: nil)
            #expect(
                refusal { _ = try verifier.findings(of: chain, at: time) }
                    == .attestationExtensionMissing)
        }
        // The root is Google's, and signatures and names verify. If the key of the virtual machine signed a leaf with a key
        // description, only the check of the shape would refuse the chain.
        let rules = PathRules(chain: chain, anchors: .google, verified: VerifiedSteps())
        let (anchor, isRootIncluded) = try rules.findAnchor()
        try rules.checkSignatures()
        try rules.checkNames(anchor)
        #expect(refusal { _ = try rules.checkShape(rootIsIncluded: isRootIncluded) } == .chainShape)
    }
}

@Suite("What the attestation certificate vouches for")
struct AttestationCertificateTests {
    private typealias Certificate = KeyAttestationCertificate
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private static func strongBox(_ options: inout KeyAttestationOptions) { options = .strongBox }

    @Test("a TEE key cannot sign itself a certificate that says StrongBox, or one with provisioning information")
    func forgedCertificate() throws {
        // An attested key of the device's TEE signs a certificate for an attacker's key, which signs the leaf.
        let (teeKey, forgedKey) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let attested = Certificate([.commonName("Android Keystore Key")], key: .privateKey(teeKey))
        for forged in [
            Certificate.factoryAttestation(title: "StrongBox", key: .privateKey(forgedKey)),
            .remoteAttestation(
                organization: "StrongBox", key: .privateKey(forgedKey),
                extensions: [.provisioningInfo([0xA1, 0x01, 0x01])]),
        ] {
            let leaf = fixture.leaf(Self.strongBox)
            #expect(
                try fixture.code(
                    [leaf, forged, attested, .factoryAttestation(title: "TEE"), .factoryIntermediate], under: .factory)
                    == .chainShape)
            #expect(
                try fixture.code(
                    [leaf, forged, .factoryAttestation(title: "TEE"), .factoryIntermediate], under: .factory)
                    == .chainShape)
            #expect(
                try fixture.code(
                    [leaf, forged, .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2], under: .remote)
                    == .chainShape)
        }
    }

    @Test("the certificate above the leaf alone corroborates a StrongBox")
    func corroboration() throws {
        func isCorroborated(_ change: (inout [Certificate]) -> Void, remote: Bool = false) throws -> Bool {
            var path: [Certificate] =
                remote
                ? [fixture.leaf(Self.strongBox), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2]
                : [fixture.leaf(Self.strongBox), .factoryAttestation(title: "TEE"), .factoryIntermediate]
            change(&path)
            return try fixture.verify(path, under: remote ? .remote : .factory).isStrongBoxCorroborated
        }
        #expect(try !isCorroborated { _ in })
        #expect(try isCorroborated { $0[1].subject = [.serialNumber("1"), .title("StrongBox")] })
        #expect(try isCorroborated { $0[1].subject = [.serialNumber("1"), .organization("StrongBox")] })
        #expect(try isCorroborated({ $0[1].subject[0] = .organization("StrongBox") }, remote: true))
        #expect(try isCorroborated({ $0[1].subject.append(.title("StrongBox")) }, remote: true))
        // The leaf's name does not corroborate StrongBox, because the app chooses that name. The names of authorities do not
        // corroborate StrongBox either.
        for index in [0, 2] {
            #expect(try !isCorroborated { $0[index].subject.append(.title("StrongBox")) })
            #expect(try !isCorroborated { $0[index].subject.append(.organization("StrongBox")) })
        }
        #expect(try !isCorroborated({ $0[2].subject.append(.title("StrongBox")) }, remote: true))
        // A subject with both titles corroborates neither level.
        #expect(try !isCorroborated { $0[1].subject = [.title("StrongBox"), .title("TEE")] })
        #expect(try !isCorroborated { $0[1].subject = [.title("Strongbox")] })
        #expect(try !isCorroborated { $0[1].subject = [.commonName("StrongBox")] })
    }

    @Test("provisioning information is read from the certificate above the leaf alone")
    func provisioningInfo() throws {
        let info = Certificate.Extension.provisioningInfo([0xA1, 0x01, 0x18, 0x40])
        let path: [Certificate] = [
            fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2,
        ]
        for index in path.indices {
            var marked = path
            marked[index].extensions.append(info)
            let found = try fixture.verify(marked, under: .remote).provisioningInfo
            #expect(found?.certificatesIssued == (index == 1 ? 64 : nil))
            #expect((found == nil) == (index != 1))
        }
        // A factory-provisioned chain may have provisioning information too, if its shape is correct.
        var factory: [Certificate] = [fixture.leaf(), .factoryAttestation(title: "TEE"), .factoryIntermediate]
        factory[1].extensions = [info]
        #expect(try fixture.verify(factory, under: .factory).provisioningInfo?.certificatesIssued == 64)
    }

    @Test("every entry of the provisioning information is exposed, unknown ones included")
    func wholeMap() throws {
        // {1: 32, 2: true, 3: "Google", 4: [-1, h'01'], "x": {1.5: null}, -7: "minus"}
        let encoded: [UInt8] =
            [0xA6, 0x01, 0x18, 0x20, 0x02, 0xF5, 0x03, 0x66] + Array("Google".utf8)
            + [0x04, 0x82, 0x20, 0x41, 0x01, 0x61, 0x78, 0xA1, 0xF9, 0x3E, 0x00, 0xF6, 0x26, 0x65]
            + Array("minus".utf8)
        func json(_ info: ProvisioningInfo?) -> JSONValue? { info.map { .object($0.json) } }
        func info(_ value: [UInt8]) throws -> (ProvisioningInfo?, [String]) {
            let verified = try fixture.verify(
                [
                    fixture.leaf(),
                    .remoteAttestation(organization: "TEE", extensions: [.provisioningInfo(value)]), .droidCA3,
                    .droidCA2,
                ], under: .remote)
            return (verified.provisioningInfo, verified.quirks.map(\.description))
        }
        let (found, quirks) = try info(encoded)
        #expect(found?.certificatesIssued == 32 && found?.manufacturer == "Google")
        #expect(
            json(found) == [
                "1": 32, "2": true, "3": "Google", "4": [-1, "01"], "x": ["f93e00": .null], "-7": "minus",
            ])
        #expect(!quirks.contains { $0.contains("provisioning") })
        // The verifier does not refuse a device because a member has another type or the value is not a map.
        #expect(json(try info([0xA2, 0x01, 0x61, 0x38, 0x03, 0x05]).0) == ["1": "8", "3": 5])
        #expect(try info([0xA2, 0x01, 0x61, 0x38, 0x03, 0x05]).0?.certificatesIssued == nil)
        for odd in [[], [0x80], [0xBF, 0xFF], [0xA1, 0x01]] as [[UInt8]] {
            let (none, quirks) = try info(odd)
            #expect(none == nil)
            #expect(quirks.contains("cert1:provisioningInfo-unreadable"))
        }
        // Two keys of different types that would get the same JSON name are both kept.
        #expect(json(try info([0xA2, 0x01, 0x01, 0x61, 0x31, 0x02]).0) == ["1": 1, "6131": 2])
        // {"01": 1, "1": 2, 1: 3}: the encoding of the last key is a used name too.
        #expect(
            json(try info([0xA3, 0x62, 0x30, 0x31, 0x01, 0x61, 0x31, 0x02, 0x01, 0x03]).0)
                == ["01": 1, "1": 2, "01 (2)": 3])
    }
}
