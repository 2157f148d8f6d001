import AndroidKeyAttestation
import AttestationTestKit
import Crypto
import Foundation

/// Signs the certificates of the model. Each is signed once, and its bytes are used again in other chains, so that the
/// verifier's cache has hits.
private final class Signatures {
    static let time = Date(timeIntervalSince1970: 1_795_262_400)
    static let challenge = [UInt8](repeating: 5, count: 32)

    let authority: GoogleAuthority
    let registered = P256.Signing.PrivateKey()
    private let attackers = P256.Signing.PrivateKey()
    private let anotherAttackers = P256.Signing.PrivateKey()
    private var certificates: [SignedCertificate: [UInt8]] = [:]
    private let roots: [RootKind: [UInt8]]

    init() throws {
        authority = try GoogleAuthority.p256()
        var roots: [RootKind: [UInt8]] = [:]
        for (kind, root) in [(RootKind.factory, GoogleAuthority.Root.factory), (.remote, .remote)] {
            roots[kind] = try authority.sign([], under: root, at: Self.time).last
        }
        self.roots = roots
    }

    func encode(_ sent: SentCertificate) throws -> [UInt8] {
        switch sent {
        case .root(let kind): return roots[kind] ?? []
        case .signed(let signed):
            if let known = certificates[signed] { return known }
            let encoded = try sign(signed)
            if certificates.count >= 20_000 { certificates.removeAll() }
            certificates[signed] = encoded
            return encoded
        }
    }

    private func sign(_ signed: SignedCertificate) throws -> [UInt8] {
        let model = signed.certificate
        var certificate = KeyAttestationCertificate(model.subject, key: key(model.key))
        certificate.extensions = model.extensions.map(encode)
        certificate.issuer = signed.issuer
        certificate.isSignatureBroken = signed.isSignatureBroken
        certificate.serialNumber = [model.isRevoked ? 0x77 : 0x01]
        let now = Self.time
        switch model.validity {
        case .usual: break
        case .beginsNow: certificate.validity = now...(now + 1000)
        case .endsNow: certificate.validity = (now - 1000)...now
        case .past: certificate.validity = (now - 1000)...(now - 1)
        case .future: certificate.validity = (now + 1)...(now + 1000)
        }
        let encoded =
            switch signed.signer {
            case .root(let kind):
                try authority.sign(
                    [certificate], under: kind == .factory ? .factory : .remote, includesRoot: false, at: now)
            case .key(let signer):
                try authority.sign(
                    [certificate, KeyAttestationCertificate([], key: key(signer))], under: .factory,
                    includesRoot: false, at: now)
            }
        return encoded.first ?? []
    }

    private func key(_ key: ModelKey) -> KeyAttestationCertificate.Key {
        switch key {
        case .attestation: .attestation
        case .factoryIntermediate: .factoryIntermediate
        case .droidCA3: .droidCA3
        case .droidCA2: .droidCA2
        case .registered: .privateKey(registered)
        case .attackers: .privateKey(attackers)
        case .anotherAttackers: .privateKey(anotherAttackers)
        }
    }

    private func encode(_ model: ModelCertificate.Extension) -> KeyAttestationCertificate.Extension {
        switch model {
        case .description(let claims): .keyDescription(description(claims))
        case .virtualMachine: .virtualMachine
        case .provisioningInfo(let count): .provisioningInfo(count.map { [0xA1, 0x01, $0] } ?? [0xA1])
        case .other: .init([1, 3, 6, 1, 4, 1, 11129, 2, 1, 29, 2], [0x05, 0x00])
        }
    }

    private func description(_ claims: ModelClaims) -> [UInt8] {
        let written = GoogleAuthority.keyDescription(
            challenge: claims.hasChallenge ? Self.challenge : [1], at: Self.time, options: claims.options)
        return switch claims.whole {
        case .written: written
        case .empty: []
        case .noFields: [0x30, 0x00]
        case .cutShort: Array(written.dropLast())
        }
    }
}

// libFuzzer calls `fuzz` only on one thread.
nonisolated(unsafe) private let signatures = Result { try Signatures() }

private let verifiers: Result<[ModelPolicy: KeyAttestationVerifier], any Error> = Result {
    let anchors = try KeyAttestationTrustAnchors(pem: signatures.get().authority.rootsPEM())
    let list = try RevocationStatusList(parsing: Array(#"{"entries": {"77": {"status": "REVOKED"}}}"#.utf8))
    // Copies of one verifier, which share its cache.
    let first = KeyAttestationVerifier(
        policy: KeyAttestationPolicy(
            packages: ["com.example.app"], certificateDigests: [[UInt8](repeating: 0x11, count: 32)]),
        trustAnchors: anchors, statusList: list)
    var verifiers: [ModelPolicy: KeyAttestationVerifier] = [:]
    for policy in ModelPolicy.allCases {
        var verifier = first
        verifier.policy.bootKeys = [ModelClaims.listedBootKey]
        switch policy {
        case .registration: break
        case .strongBox: verifier.policy.minimumSecurityLevel = .strongBox
        case .patchAge: verifier.policy.maximumPatchAgeDays = 365
        case .unchainedNames: verifier.policy.requiresChainedNames = false
        }
        verifiers[policy] = verifier
    }
    return verifiers
}

private func judge(
    _ encodings: [[UInt8]], _ verifier: KeyAttestationVerifier, _ key: P256.Signing.PublicKey
) -> Result<VerifiedKeyAttestation, KeyAttestationError> {
    Result { () throws(KeyAttestationError) in
        try verifier.verify(
            KeyAttestationChain(der: encodings), challenge: Signatures.challenge, publicKey: key, at: Signatures.time)
    }
}

/// Ends the process with the reason. Preconditions would be silent in an optimised build.
private func require(_ condition: Bool, _ reason: @autoclosure () -> String) {
    if !condition { fatalError(reason()) }
}

/// A chain verifies if and only if the oracle accepts its model. A cache that earlier chains filled changes no outcome.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let signatures = try? signatures.get(), let verifiers = try? verifiers.get() else {
        fatalError("the test kit makes no authority")
    }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    var choices = Choices(bytes)
    let policy = choices.one(of: ModelPolicy.allCases)
    let plan = ChainPlan(&choices)
    guard let verifier = verifiers[policy], let encodings = try? plan.sent.map(signatures.encode) else {
        fatalError("the plan cannot be signed: \(plan)")
    }
    let key = signatures.registered.publicKey
    let oracle = Oracle(sent: plan.sent, policy: policy)
    let outcome = judge(encodings, verifier, key)
    switch outcome {
    case .success(let verified):
        require(oracle.accepts, "verified under \(policy): \(plan)")
        require(verified.provisioning.rawValue == oracle.kind.rawValue, "another kind: \(plan)")
        require(verified.isRootIncluded == oracle.isRootIncluded, "another root: \(plan)")
        require(verified.isStrongBoxCorroborated == oracle.isStrongBoxCorroborated, "another home: \(plan)")
        require(verified.provisioningInfo?.certificatesIssued == oracle.certificatesIssued, "other info: \(plan)")
        require(verified.publicKey?.rawRepresentation == key.rawRepresentation, "another key: \(plan)")
        _ = verified.quirks
    case .failure(let error):
        require(!oracle.accepts, "refused under \(policy) with \(error): \(plan)")
    }
    if isJudgedTwice(bytes) {
        let fresh = KeyAttestationVerifier(
            policy: verifier.policy, trustAnchors: verifier.trustAnchors, statusList: verifier.statusList)
        compare(outcome, judge(encodings, fresh, key), plan)
    }
    return 0
}

/// Whether this input also goes to a verifier with an empty cache, as one input in eight does. Every input goes to a
/// verifier whose cache the earlier inputs filled. The one with an empty cache computes every signature, and so costs
/// as much as four others. The input's bytes decide, so a crash is reproducible.
private func isJudgedTwice(_ bytes: [UInt8]) -> Bool {
    bytes.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 } >> 29 == 0 || bytes.isEmpty
}

private func compare(
    _ warm: Result<VerifiedKeyAttestation, KeyAttestationError>,
    _ cold: Result<VerifiedKeyAttestation, KeyAttestationError>, _ plan: ChainPlan
) {
    switch (warm, cold) {
    case (.success, .success): break
    case (.failure(let one), .failure(let other)):
        require(one == other, "\(one) with and \(other) without a cache: \(plan)")
    default: fatalError("the cache decides: \(plan)")
    }
}
