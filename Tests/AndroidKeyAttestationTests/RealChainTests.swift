import AndroidKeyAttestation
import Foundation
import StrictJSON
import Testing

@Suite("Chains of real devices")
struct RealChainTests {
    @Test("there are 79 of them")
    func count() {
        #expect(Vectors.names.count == 79)
    }

    @Test("each is judged as expected", arguments: Vectors.names)
    func outcome(name: String) throws {
        let vector = try Vectors.chain(name)
        let code = refusal {
            _ = try KeyAttestationVerifier.audit().findings(of: vector.chain(), at: nil)
        }
        if vector.isAccepted {
            #expect(code == nil)
        } else {
            let reasons = try #require(code.flatMap { Self.reasons[$0] }, "\(code?.rawValue ?? "accepted")")
            #expect(!reasons.isDisjoint(with: vector.reasons), "\(code?.rawValue ?? "") is none of \(vector.reasons)")
        }
    }

    /// For each refusal code of the verifier, the reasons in the vectors that mean the same.
    private static let reasons: [KeyAttestationError.Code: Set<String>] = [
        .softwareRoot: ["untrusted_root:software"],
        .untrustedRoot: ["untrusted_root"],
        .signatureInvalid: ["bad_signature[0]"],
        .signatureAlgorithmUnsupported: [],
        .attestationExtensionRepeated: ["multiple_attestation_extensions"],
        .securityLevelTooLow: ["software_security_level"],
        .securityLevelsDiffer: ["security_level_mismatch"],
        .rootOfTrustMissing: ["no_hardware_root_of_trust"],
        .deviceUnlocked: ["device_unlocked"],
        .bootStateRefused: ["verified_boot_state_Unverified"],
    ]

    @Test("every field is read as expected", arguments: Vectors.names)
    func fields(name: String) throws {
        let vector = try Vectors.chain(name)
        #expect(Self.sorted(try vector.chain().unverifiedDescription().json) == Self.sorted(vector.expected))
    }

    /// Sorts the members, because their order is not compared.
    private static func sorted(_ value: JSONValue) -> JSONValue {
        guard let members = value.object?.members else { return value }
        return .object(JSONObject(members.sorted { $0.name < $1.name }.map { ($0.name, sorted($0.value)) }))
    }

    @Test("every quirk is seen", arguments: Vectors.names.filter { !$0.hasPrefix("neg-") })
    func quirks(name: String) throws {
        let vector = try Vectors.chain(name)
        let expected = vector.quirks.map { $0.replacingOccurrences(of: " (names-differ)", with: "") }
        let difference = try Set(vector.chain().quirks.map(\.description)).symmetricDifference(expected)
        #expect(difference == [])
    }

    @Test("root and kind of provisioning are recognised", arguments: Vectors.names)
    func origin(name: String) throws {
        let vector = try Vectors.chain(name)
        guard vector.isAccepted else { return }
        let verified = try KeyAttestationVerifier.audit().findings(of: vector.chain(), at: nil)
        #expect(verified.provisioning.rawValue == vector.provisioning)
        #expect(vector.rootLabel.hasPrefix(verified.anchor.label))
        #expect(verified.isRootIncluded != vector.rootLabel.contains("not in chain"))
        #expect(verified.anchor.origin == .google)
    }

    @Test("every StrongBox among them is corroborated by the certificate of its attestation key")
    func strongBoxes() throws {
        var policy = KeyAttestationPolicy.audit
        policy.minimumSecurityLevel = .strongBox
        var accepted = 0
        for vector in Vectors.chains.values where vector.isAccepted {
            let isStrongBox = try vector.chain().unverifiedDescription().securityLevel == .strongBox
            let code = refusal {
                _ = try KeyAttestationVerifier.audit(policy).findings(of: vector.chain(), at: nil)
            }
            #expect(code == (isStrongBox ? nil : .securityLevelTooLow))
            accepted += isStrongBox ? 1 : 0
        }
        #expect(accepted >= 8)
    }
}
