import AndroidKeyAttestation
import AppAttest
import AttestationTestKit
import Crypto
import Foundation
import PlayIntegrity
import StrictJSON
import Testing
import Verification

/// A line that the service writes about a refused proof is read as the same evidence. Verifying it gives the same result.
@Suite struct EvidenceLineTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let time: JSONValue = "2026-09-21T14:13:20Z"
    private static let appID = "TEAMID1234.com.example.app"
    private static let hash: [UInt8] = [1, 2, 3]

    private func attested() throws -> (object: [UInt8], key: AppleAttestKey, options: VerificationOptions) {
        let authority = try AppleAuthority(from: Self.now - 30 * 86400)
        let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: Self.appID), authority: authority)
        let key = AppleAttestKey()
        var options = VerificationOptions()
        options.rootsPEM = authority.rootsPEM
        options.policy = ["ios": ["app_ids": [.string(Self.appID)]]]
        return (try device.attest(key, clientDataHash: Self.hash, at: Self.now), key, options)
    }

    @Test func `an attestation`() throws {
        let (object, _, options) = try attested()
        var evidence = AppAttestEvidence(.attestation, object, at: Self.now)
        evidence.expected.clientDataHash = ClientDataHash(Self.hash)
        #expect(evidence.line.members.map(\.name) == ["format", "object", "client_data_hash", "valid_at"])
        #expect(evidence.line["format"] == "app-attest-attestation" && evidence.line["valid_at"] == Self.time)
        let read = try AppAttestEvidence(JSONFields(.object(evidence.line)), as: .attestation, isTrusted: true)
        #expect(read.line == evidence.line)
        let audit = try read.auditAttestation(under: options)
        #expect(audit.refusal == nil && audit.unchecked == [.keyID, .environment])
        let direct = try evidence.auditAttestation(under: options)
        #expect(audit.steps == direct.steps)
        evidence.expected.clientDataHash = ClientDataHash([4])
        #expect(try evidence.auditAttestation(under: options).refusal?.code == .nonceMismatch)
    }

    @Test func `the receipt of a stored key`() throws {
        let (object, key, options) = try attested()
        var evidence = AppAttestEvidence(
            .receipt, try AttestationObject(parsing: object).receipt, at: Self.now)
        evidence.isWholeReceipt = true
        evidence.expected.appIDs = AppleAppID(Self.appID).map { [$0] }
        evidence.expected.publicKey = try P256.Signing.PublicKey(x963Representation: key.x963)
        evidence.expected.clientDataHash = ClientDataHash(Self.hash)
        evidence.expected.environments = [.production]
        #expect(
            evidence.line.members.map(\.name) == [
                "format", "object", "whole_object", "app_id", "public_key_x963", "client_hash_b64", "environment",
                "valid_at",
            ])
        let read = try AppAttestEvidence(JSONFields(.object(evidence.line)), as: .receipt, isTrusted: true)
        #expect(read.line == evidence.line)
        let audit = try read.auditReceipt(under: options)
        #expect(audit.refusal == nil)
    }

    @Test func `an assertion has its counter and extensions, also where they are nothing`() throws {
        var evidence = AppAttestEvidence(.assertion, [0xA0])
        evidence.expected.publicKey = P256.Signing.PrivateKey().publicKey
        evidence.expected.clientDataHash = ClientDataHash(Self.hash)
        #expect(
            evidence.line.members.map(\.name) == [
                "format", "object", "public_key_x963", "client_data_hash", "attested_extensions", "previous_counter",
            ])
        evidence.expected.attestedExtensions = true
        evidence.expected.previousCounter = .max
        let read = try AppAttestEvidence(JSONFields(.object(evidence.line)), as: .assertion, isTrusted: true)
        #expect(read.line == evidence.line)
        #expect(read.expected.previousCounter == .max && read.expected.attestedExtensions)
    }

    @Test func `a chain`() throws {
        let authority = try GoogleAuthority()
        let key = P256.Signing.PrivateKey().publicKey
        let chain = try authority.attest(key, challenge: [0xAB, 0xCD], at: Self.now)
        var options = VerificationOptions()
        options.rootsPEM = try authority.rootsPEM()
        let evidence = KeyAttestationEvidence(chain, challenge: [0xAB, 0xCD], publicKey: key, at: Self.now)
        #expect(
            evidence.line.members.map(\.name) == [
                "format", "chain_pem", "challenge_hex", "public_key_spki", "valid_at",
            ])
        #expect(evidence.line["challenge_hex"] == "abcd" && evidence.line["valid_at"] == Self.time)
        let read = try KeyAttestationEvidence(JSONFields(.object(evidence.line)))
        #expect(read.line == evidence.line)
        let audit = try read.audit(under: options)
        let direct = try evidence.audit(under: options)
        #expect(audit.refusal == nil && audit.steps == direct.steps)
        let other = KeyAttestationEvidence(chain, challenge: [0xAB], publicKey: key, at: Self.now)
        #expect(try other.audit(under: options).refusal?.code == .challengeMismatch)
    }

    @Test func `a token with its verdict, which only a trusted line may bring`() throws {
        let payload = JSONObject([("requestDetails", JSONValue.object(JSONObject([("nonce", "bm9uY2Ugbm9uY2U")])))])
        let verdict = IntegrityVerdict(payload: payload, decodedBy: .google)
        let evidence = PlayIntegrityEvidence(
            "token", verdict, packages: ["com.example.b", "com.example.a"], binding: "bm9uY2Ugbm9uY2U", at: Self.now)
        #expect(
            evidence.line.members.map(\.name) == [
                "format", "token", "packages", "nonce_or_request_hash", "evaluate_at", "recorded_verdict",
            ])
        #expect(evidence.line["packages"] == ["com.example.a", "com.example.b"])
        let fields = try JSONFields(.object(evidence.line))
        #expect(try PlayIntegrityEvidence(fields, isTrusted: true).line == evidence.line)
        #expect(try PlayIntegrityEvidence(fields, isTrusted: false).line["recorded_verdict"] == nil)
    }

    // MARK: What is not audited

    @Test(arguments: [
        ("policy", "POLICY_UNREADABLE"), ("roots", "ROOTS_UNREADABLE"), ("status_list", "STATUS_LIST_UNREADABLE"),
    ])
    func `an option that cannot be used is named`(option: String, code: String) throws {
        var options = VerificationOptions()
        if option == "policy" { options.policy = ["key_attestation": ["dates": 1]] }
        if option == "roots" { options.rootsPEM = "none" }
        if option == "status_list" { options.statusList = [] }
        let line = try JSONFields(["format": "android-key-attestation", "chain_pem": "none"])
        let error = #expect(throws: NothingVerified.self) {
            try KeyAttestationEvidence(line).audit(under: options)
        }
        #expect(error?.verdict.outcome == .couldNotCheck)
        #expect(error?.verdict.code == code && error?.verdict.step == option)
    }

    @Test(arguments: EvidenceFormat.allCases)
    func `a line without its object names the member`(format: EvidenceFormat) throws {
        let line = try JSONFields(["format": .string(format.rawValue)])
        let options = VerificationOptions()
        let error = #expect(throws: NothingVerified.self) {
            switch format {
            case .attestation:
                _ = try AppAttestEvidence(line, as: format, isTrusted: false).auditAttestation(under: options)
            case .assertion:
                _ = try AppAttestEvidence(line, as: format, isTrusted: false).auditAssertion(under: options)
            case .receipt: _ = try AppAttestEvidence(line, as: format, isTrusted: false).auditReceipt(under: options)
            case .keyAttestation: _ = try KeyAttestationEvidence(line).audit(under: options)
            case .playIntegrity: _ = try PlayIntegrityEvidence(line, isTrusted: false).audit(under: options)
            }
        }
        #expect(error?.verdict.unchecked == [format.objectMember])
        #expect(error?.verdict.code == (format.policy == .ios ? nil : "OBJECT_MISSING"))
    }
}
