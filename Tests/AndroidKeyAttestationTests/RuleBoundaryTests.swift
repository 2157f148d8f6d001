import AttestationTestKit
import Bytes
import Crypto
import Foundation
import Testing

@testable import AndroidKeyAttestation

@Suite("Patch levels")
struct PatchLevelTests {
    @Test(
        "a patch level is a month or a day of the calendar",
        arguments: [
            (200_000, false), (200_001, true), (200_012, true), (200_013, false), (202_600, false), (202_611, true),
            (999_912, true), (999_913, false), (999_999, false), (1_000_000, false), (19_991_231, false),
            (20_000_099, false), (20_000_100, true), (20_000_101, true), (20_000_131, true), (20_000_132, false),
            (20_240_229, true), (20_250_229, false), (20_261_100, true), (99_991_200, true), (99_991_231, true),
            (99_991_232, false), (100_000_101, false), (0, false), (-202_611, false), (.max, false),
        ] as [(Int64, Bool)])
    func dates(value: Int64, isDate: Bool) {
        #expect((PatchLevel(value) != nil) == isDate)
    }

    @Test("an absent patch level is none")
    func absent() {
        #expect(PatchLevel(nil) == nil)
    }

    @Test("months and the day 00 count from the first of the month")
    func age() throws {
        let time = Date(timeIntervalSince1970: 1_795_262_400)  // 2026-11-21T12:00:00Z
        for (value, days) in [
            (202_611, 20.5), (20_261_100, 20.5), (20_261_101, 20.5), (20_261_121, 0.5), (20_261_122, -0.5),
        ] as [(Int64, Double)] {
            #expect(try #require(PatchLevel(value)).ageInDays(at: time) == days)
        }
    }

    @Test("a patch level of exactly the greatest age passes, a second later it does not")
    func greatestAge() throws {
        var fixture = try Fixture()
        fixture.policy.maximumPatchAgeDays = 30
        let encodings = try fixture.encodings { $0.osPatchLevel = 202_611 }
        let limit = Date(timeIntervalSince1970: 1_793_491_200 + 30 * 86_400)  // 2026-11-01 and 30 days
        var policy = fixture.policy
        policy.dates = .ignore
        fixture.policy = policy
        #expect(refusal { _ = try fixture.verify(encodings, at: limit) } == nil)
        #expect(refusal { _ = try fixture.verify(encodings, at: limit + 1) } == .patchLevelTooOld)
    }
}

@Suite("Claims")
struct ClaimTests {
    private var fixture: Fixture

    init() throws { fixture = try Fixture() }

    @Test("both levels must reach the minimum, and differ only where the policy lets them")
    func securityLevels() throws {
        var fixture = fixture
        for equal in [true, false] {
            for minimum in [nil] + SecurityLevel.allCases {
                for (attestation, key) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)] {
                    fixture.policy.requiresEqualLevels = equal
                    fixture.policy.minimumSecurityLevel = minimum
                    let lowest = min(attestation, key)
                    // If the attestation claims StrongBox, the test kit also names it in the chain, which corroborates the claim.
                    let expected: KeyAttestationError.Code? =
                        if let minimum, lowest < minimum.rawValue {
                            .securityLevelTooLow
                        } else if equal, attestation != key { .securityLevelsDiffer } else { nil }
                    let code = try fixture.code {
                        $0.attestationSecurityLevel = attestation
                        $0.keyMintSecurityLevel = key
                    }
                    #expect(code == expected, "\(attestation) \(key) at least \(String(describing: minimum))")
                }
            }
        }
    }

    @Test("StrongBox must be corroborated only if the policy demands it")
    func corroboration() throws {
        var fixture = fixture
        for (minimum, expected) in [
            (.software, nil), (.trustedEnvironment, nil), (.strongBox, .strongBoxNotCorroborated),
        ] as [(SecurityLevel, KeyAttestationError.Code?)] {
            fixture.policy.minimumSecurityLevel = minimum
            let code = try fixture.code {
                $0 = .strongBox
                $0.certifiedSecurityLevel = 1
            }
            #expect(code == expected)
        }
    }

    @Test("a challenge of the same length that differs in one bit, a shorter and a longer one are refused")
    func challenge() throws {
        let encodings = try fixture.encodings()
        for index in Fixture.challenge.indices {
            var changed = Fixture.challenge
            changed[index] ^= 0x01
            #expect(refusal { _ = try fixture.verify(encodings, challenge: changed) } == .challengeMismatch)
        }
        let shorter = Array(Fixture.challenge.dropLast())
        #expect(refusal { _ = try fixture.verify(encodings, challenge: shorter) } == .challengeMismatch)
        #expect(constantTimeEquals([], []) && !constantTimeEquals([0], []) && !constantTimeEquals([1], [2]))
    }

    @Test("an attested key that is not of P-256 registers nothing")
    func otherCurves() throws {
        let rules = ClaimRules(
            description: try KeyDescription(fixture.description()[...]), policy: fixture.policy)
        #expect(
            refusal { try rules.checkPublicKey(nil, is: fixture.key.publicKey) } == .attestedKeyUnsupported)
    }

    @Test("tag 600 refuses in either list, and only where an application is asked for")
    func allApplications() throws {
        for isInSoftware in [false, true] {
            #expect(
                try fixture.code {
                    $0.isOpenToAllApplications = true
                    $0.areClaimsInSoftware = isInSoftware
                } == .allApplications)
        }
        var open = fixture
        open.policy.packages = nil
        #expect(try open.code { $0.isOpenToAllApplications = true } == .allApplications)
        open.policy.certificateDigests = nil
        #expect(try open.code { $0.isOpenToAllApplications = true } == nil)
        #expect(try open.code { $0.packages = nil } == nil)
    }

    @Test("an unlocked boot loader passes only with a state Unverified that the policy lists")
    func unlocked() throws {
        var fixture = fixture
        func code(_ state: Int, _ locked: UInt8) throws -> KeyAttestationError.Code? {
            try fixture.code {
                $0.rootOfTrust?.verifiedBootState = state
                $0.rootOfTrust?.deviceLocked = locked
            }
        }
        fixture.policy.bootStates = [.verified, .unverified]
        #expect(try code(0, 0xFF) == nil)
        #expect(try code(0, 0) == .deviceUnlocked)
        #expect(try code(2, 0) == nil)
        #expect(try code(2, 0xFF) == nil)
        #expect(try code(1, 0xFF) == .bootStateRefused)
        #expect(try code(3, 0xFF) == .bootStateRefused)
        fixture.policy.bootStates = [.verified]
        #expect(try code(2, 0) == .deviceUnlocked)
        #expect(try code(2, 0xFF) == .bootStateRefused)
        fixture.policy.bootStates = nil
        #expect(try code(3, 0) == nil)
    }

    @Test("a listed boot key counts for SelfSigned alone")
    func bootKeys() throws {
        var fixture = fixture
        fixture.policy.bootKeys = [[UInt8](repeating: 0xAB, count: 32)]
        for (state, expected) in [(0, nil), (1, nil), (2, .bootStateRefused), (3, .bootStateRefused)]
            as [(Int, KeyAttestationError.Code?)]
        {
            #expect(try fixture.code { $0.rootOfTrust?.verifiedBootState = state } == expected)
        }
        fixture.policy.bootStates = []
        #expect(try fixture.code { $0.rootOfTrust?.verifiedBootState = 1 } == nil)
        #expect(try fixture.code { _ in } == .bootStateRefused)
    }

    @Test("origin, purposes and algorithm count from hardware alone, and only where they are asked for")
    func optionalClaims() throws {
        var fixture = fixture
        for origin: Int64 in [1, 2, 3, 4, -1] {
            #expect(try fixture.code { $0.origin = origin } == .originRefused)
        }
        #expect(try fixture.code { $0.purposes = [2] } == nil)
        #expect(try fixture.code { $0.algorithm = 4 } == .algorithmRefused)
        fixture.policy.bootStates = nil
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == .originRefused)
        fixture.policy.requiresGeneratedKey = false
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == .purposeRefused)
        #expect(try fixture.code { $0.origin = 2 } == nil)
        fixture.policy.purposes = nil
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == .algorithmRefused)
        #expect(try fixture.code { $0.purposes = [7] } == nil)
        fixture.policy.algorithms = nil
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == nil)
        fixture.policy.maximumPatchAgeDays = 90
        #expect(try fixture.code { $0.areClaimsInSoftware = true } == .patchLevelMissing)
    }
}

@Suite("Dates and names")
struct PathRuleTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    @Test("a certificate is valid from its first second to its last", arguments: [1, 2, 3])
    func edges(index: Int) throws {
        let (first, last) = (Fixture.time - 1000, Fixture.time + 1000)
        for provisioning in [KeyAttestationOptions.Provisioning.factory, .remote] {
            let encodings = try fixture.encodings {
                $0.provisioning = provisioning
                $0.validity = [index: first...last]
            }
            func code(_ time: Date) -> KeyAttestationError.Code? {
                refusal { _ = try fixture.verify(encodings, at: time) }
            }
            #expect(code(first) == nil)
            #expect(code(first - 0.5) == .certificateNotYetValid)
            #expect(code(last) == nil)
            #expect(code(last + 0.5) == (provisioning == .remote ? .certificateExpired : nil))
        }
    }

    @Test("a chain of unknown kind expires as a remotely provisioned one")
    func unknownKindExpires() throws {
        var path: [KeyAttestationCertificate] = [
            fixture.leaf(), .factoryAttestation(title: "TEE"),
            .init([.commonName("Some CA")], key: .factoryIntermediate),
        ]
        path[1].validity = (Fixture.time - 200)...(Fixture.time - 100)
        #expect(try fixture.code(path, under: .factory) == .certificateExpired)
        path[2] = .factoryIntermediate
        #expect(try fixture.code(path, under: .factory) == nil)
    }

    @Test("every certificate must name the next as its issuer, the last one the pinned root", arguments: [true, false])
    func names(includesRoot: Bool) throws {
        var path: [KeyAttestationCertificate] = [
            fixture.leaf(), .factoryAttestation(title: "TEE"), .factoryIntermediate,
        ]
        for index in path.indices {
            path[index].issuer = [.commonName("Nobody")]
            #expect(try fixture.code(path, under: .factory, includesRoot: includesRoot) == .issuerNameMismatch)
            var lenient = fixture
            lenient.policy.requiresChainedNames = false
            #expect(try lenient.code(path, under: .factory, includesRoot: includesRoot) == nil)
            path[index].issuer = nil
        }
    }

    @Test("every certificate of a path without its root is looked up in the status list")
    func revocationWithoutRoot() throws {
        var fixture = fixture
        fixture.statusList = try RevocationStatusList(
            parsing: Array(#"{"entries": {"77": {"status": "REVOKED", "reason": {"words": "to come"}}}}"#.utf8))
        var path: [KeyAttestationCertificate] = [
            fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2,
        ]
        for index in path.indices {
            path[index].serialNumber = [0x77]
            #expect(try fixture.code(path, under: .remote, includesRoot: false) == .certificateRevoked)
            #expect(try fixture.code(path, under: .remote) == .certificateRevoked)
            path[index].serialNumber = [0x78]
        }
        #expect(try fixture.code(path, under: .remote) == nil)
    }
}

@Suite("Quirks")
struct QuirkTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private func quirks(_ change: (inout KeyAttestationOptions) -> Void) throws -> Set<String> {
        Set(try KeyAttestationChain(der: fixture.encodings(change)).quirks.map(\.description))
    }

    @Test(
        "patch levels of six and eight digits are told from others",
        arguments: [
            (99_999, "odd=99999"), (100_000, "6digits"), (999_999, "6digits"), (1_000_000, "odd=1000000"),
            (9_999_999, "odd=9999999"), (10_000_000, nil), (99_999_999, nil), (100_000_000, "odd=100000000"),
            (0, "odd=0"), (-1, "odd=-1"), (nil, "absent"),
        ] as [(Int64?, String?)])
    func patchLevels(value: Int64?, quirk: String?) throws {
        for name in ["vendorPatchLevel", "bootPatchLevel"] {
            let found = try quirks {
                if name == "vendorPatchLevel" { $0.vendorPatchLevel = value } else { $0.bootPatchLevel = value }
            }
            #expect(found.filter { $0.contains(name) } == Set(quirk.map { ["kd:\(name)-\($0)"] } ?? []))
        }
    }

    @Test("a creation time is held against the validity of the certificates above, to the second")
    func creationTime() throws {
        let (first, last) = (Fixture.time - 1000, Fixture.time + 1000)
        func isOutside(_ seconds: TimeInterval, of index: Int) throws -> Bool {
            try quirks {
                $0.validity = [index: first...last]
                $0.creationDateTime = Int64((Fixture.time.timeIntervalSince1970 + seconds) * 1000)
            }.contains("creation-time-outside-issuer-validity")
        }
        for index in 1...3 {
            #expect(try !isOutside(-1000, of: index))
            #expect(try isOutside(-1001, of: index))
            #expect(try !isOutside(1000, of: index))
            #expect(try isOutside(1001, of: index))
        }
        #expect(try !isOutside(-1001, of: 0), "the leaf's dates never count")
    }

    @Test("a creation time after the year 2100 is counted in other units, and held against nothing")
    func creationTimeOutOfRange() throws {
        let outside = "creation-time-outside-issuer-validity"
        let latest = try quirks { $0.creationDateTime = 4_102_444_800_000 }
        #expect(latest.contains(outside) && !latest.contains("kd:creationDateTime-out-of-range"))
        let later = try quirks { $0.creationDateTime = 4_102_444_800_001 }
        #expect(!later.contains(outside) && later.contains("kd:creationDateTime-out-of-range"))
    }

    @Test("issuers that are not marked as such are reported, leaves are not asked")
    func issuers() throws {
        let marked = try quirks { _ in }
        #expect(!marked.contains { $0.contains("issuer-") })
        let unmarked = try quirks { $0.areIssuersMarked = false }
        for index in 0...3 {
            #expect(unmarked.contains("cert\(index):issuer-lacks-keyCertSign") == (index > 0))
            #expect(unmarked.contains("cert\(index):issuer-not-CA(basicConstraints=False)") == (index > 0))
        }
        let bare = try KeyAttestationChain(
            der: fixture.authority.sign(
                [fixture.leaf(), .factoryAttestation(title: "TEE"), .factoryIntermediate], under: .factory,
                at: Fixture.time)
        ).quirks.map(\.description)
        #expect(bare.contains("cert1:issuer-not-CA(basicConstraints=None)"))
        #expect(!bare.contains("cert1:issuer-lacks-keyCertSign"))
    }
}
