import AttestationTestKit
import Crypto
import Foundation
import Testing

@testable import AndroidKeyAttestation

@Suite("Cached signatures")
struct VerifiedStepsTests {
    private typealias Certificate = KeyAttestationCertificate
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private func verifier(_ policy: KeyAttestationPolicy? = nil) throws -> KeyAttestationVerifier {
        KeyAttestationVerifier(
            policy: policy ?? fixture.policy,
            trustAnchors: try KeyAttestationTrustAnchors(pem: fixture.authority.rootsPEM()),
            statusList: nil)
    }

    private func code(
        _ encodings: [[UInt8]], _ verifier: KeyAttestationVerifier, at time: Date = Fixture.time
    ) -> KeyAttestationError.Code? {
        refusal {
            _ = try verifier.verify(
                KeyAttestationChain(der: encodings), challenge: Fixture.challenge, publicKey: fixture.key.publicKey,
                at: time)
        }
    }

    private func factory(includesRoot: Bool = true) throws -> [[UInt8]] {
        try fixture.authority.sign(
            [fixture.leaf(), .factoryAttestation(title: "TEE"), .factoryIntermediate], under: .factory,
            includesRoot: includesRoot, at: Fixture.time)
    }

    private func remote(includesRoot: Bool = true) throws -> [[UInt8]] {
        try fixture.authority.sign(
            [fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2], under: .remote,
            includesRoot: includesRoot, at: Fixture.time)
    }

    /// Changes one bit of one byte of a certificate.
    private func changing(_ encodings: [[UInt8]], certificate: Int, octet: Int) -> [[UInt8]] {
        var changed = encodings
        changed[certificate][octet] ^= 0x01
        return changed
    }

    @Test("the cache stores authorities and factory attestation certificates, but not leaves or keys of one device")
    func entries() throws {
        for (encodings, count) in [
            (try factory(), 3), (try factory(includesRoot: false), 2), (try remote(), 3),
            (try remote(includesRoot: false), 2),
        ] {
            let verifier = try verifier()
            #expect(code(encodings, verifier) == nil)
            #expect(verifier.verified.count == count)
            #expect(code(encodings, verifier) == nil)
            #expect(verifier.verified.count == count)
        }
        let both = try verifier()
        #expect(code(try factory(), both) == nil)
        #expect(code(try remote(), both) == nil)
        #expect(both.verified.count == 6)
    }

    @Test("what is cached is not computed again")
    func lookedUp() throws {
        let verifier = try verifier()
        let broken = try fixture.encodings { $0.brokenSignature = 2 }
        #expect(code(broken, verifier) == .signatureInvalid)
        let chain = try KeyAttestationChain(der: broken)
        let root = SHA256.hash(data: try #require(chain.certificates.last).subjectPublicKeyInfo)
        verifier.verified.insert(
            authorities: [SignatureStep(of: chain.certificates[2], issuerKeyDigest: root)], attestation: nil)
        #expect(code(broken, verifier) == nil)
    }

    @Test("copies of a verifier share the cache, other verifiers have their own")
    func copies() throws {
        let first = try verifier()
        var copy = first
        copy.statusList = try RevocationStatusList(parsing: Array(#"{"entries": {}}"#.utf8))
        #expect(code(try factory(), copy) == nil)
        #expect(first.verified.count == 3)
        #expect(try verifier().verified.count == 0)
    }

    @Test("a chain that any path rule refuses adds nothing")
    func refusedChains() throws {
        let past = (Fixture.time - 200)...(Fixture.time - 100)
        let future = (Fixture.time + 100)...(Fixture.time + 200)
        var paths: [[Certificate]] = []
        func add(_ change: (inout [Certificate]) -> Void) {
            var path: [Certificate] = [
                fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2,
            ]
            change(&path)
            paths.append(path)
        }
        for index in 0...3 {
            add { $0[index].isSignatureBroken = true }
            add { $0[index].issuer = [.commonName("Nobody")] }
            add { $0[index].extensions.append(.virtualMachine) }
            add { $0[index].serialNumber = [0x77] }
            if index > 0 {
                add { $0[index].validity = past }
                add { $0[index].validity = future }
                add { $0[index].extensions.append(.keyDescription([])) }
            }
        }
        add { $0.remove(at: 1) }
        add { $0.remove(at: 2) }
        add { $0[1].subject = [.organization("AVF")] }
        add { $0[0].extensions = [] }
        add { $0.insert($0[1], at: 1) }
        var verifier = try verifier()
        verifier.statusList = try RevocationStatusList(
            parsing: Array(#"{"entries": {"77": {"status": "SUSPENDED"}}}"#.utf8))
        for path in paths {
            let encodings = try fixture.authority.sign(path, under: .remote, at: Fixture.time)
            #expect(code(encodings, verifier) != nil)
            #expect(verifier.verified.count == 0)
        }
        #expect(paths.count == 4 * 4 + 3 * 3 + 5)
        // Rules about the key description are not path rules: a device that they refuse still fills the cache, so its
        // next verification is as fast as an accepted one's.
        let otherChallenge = refusal {
            _ = try verifier.verify(
                KeyAttestationChain(der: remote()), challenge: [1], publicKey: fixture.key.publicKey, at: Fixture.time)
        }
        #expect(otherChallenge == .challengeMismatch)
        #expect(verifier.verified.count == 3)
    }

    @Test("dates and revocation are judged anew each time")
    func datesAndRevocation() throws {
        var verifier = try verifier()
        let encodings = try remote()
        #expect(code(encodings, verifier) == nil)
        #expect(code(encodings, verifier, at: Fixture.time + 31 * 86_400) == .certificateExpired)
        #expect(code(encodings, verifier, at: Fixture.time - 2 * 86_400) == .certificateNotYetValid)
        verifier.statusList = try RevocationStatusList(
            parsing: Array(#"{"entries": {"1": {"status": "REVOKED"}}}"#.utf8))
        #expect(code(encodings, verifier) == .certificateRevoked)
    }

    @Test("names, shape and trust are judged anew each time, whatever policy filled the cache")
    func policies() throws {
        var lenient = KeyAttestationPolicy.audit
        lenient.requiresChainedNames = false
        var path: [Certificate] = [
            fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2,
        ]
        path[2].issuer = [.commonName("Nobody")]
        let encodings = try fixture.authority.sign(path, under: .remote, at: Fixture.time)
        var verifier = try verifier(lenient)
        #expect(code(encodings, verifier) == nil)
        #expect(code(Array(encodings[1...]), verifier) == .attestationExtensionMissing)
        verifier.policy = fixture.policy
        #expect(code(encodings, verifier) == .issuerNameMismatch)
        verifier.policy = lenient
        verifier.trustAnchors = try KeyAttestationTrustAnchors(pem: GoogleAuthority().rootsPEM())
        #expect(code(encodings, verifier) == .untrustedRoot)
        #expect(code(Array(encodings.dropLast()), verifier) == .untrustedRoot)
    }

    @Test("no octet of a cached chain can be changed", arguments: [true, false])
    func changedOctets(isRemote: Bool) throws {
        let verifier = try verifier()
        let encodings = isRemote ? try remote() : try factory()
        #expect(code(encodings, verifier) == nil)
        let count = verifier.verified.count
        for certificate in encodings.indices {
            for octet in stride(from: 0, to: encodings[certificate].count, by: 7) {
                let changed = changing(encodings, certificate: certificate, octet: octet)
                #expect(code(changed, verifier) != nil, "octet \(octet) of \(certificate)")
            }
        }
        #expect(code(encodings, verifier) == nil)
        #expect(verifier.verified.count == count)
    }

    @Test("a cached certificate does not count under another issuer's key")
    func otherIssuer() throws {
        let verifier = try verifier()
        let good = try remote()
        #expect(code(good, verifier) == nil)
        // A second Droid CA2 has another key, which did not sign the certificates below the first Droid CA2.
        var path: [Certificate] = [
            fixture.leaf(), .remoteAttestation(organization: "TEE"), .droidCA3, .droidCA2,
        ]
        path[3].key = .privateKey(P256.Signing.PrivateKey())
        let other = try fixture.authority.sign(path, under: .remote, at: Fixture.time)
        #expect(code(other, verifier) == nil)
        #expect(code([other[0], other[1], good[2], other[3], other[4]], verifier) == .signatureInvalid)
        #expect(code([good[0], good[1], good[2], other[3], other[4]], verifier) == .signatureInvalid)
        // Cached signatures are not used under a root that has the same name but is not pinned.
        let lookAlike = try fixture.authority.attest(
            fixture.key.publicKey, challenge: Fixture.challenge, at: Fixture.time,
            options: {
                var options = KeyAttestationOptions.remote
                options.isRootLookAlike = true
                return options
            }())
        #expect(code(Array(good.dropLast()) + lookAlike.suffix(1), verifier) == .untrustedRoot)
    }

    @Test("chains of thousands of devices leave the cache as small as it was")
    func manyDevices() throws {
        let verifier = try verifier()
        let authorities = try remote().dropFirst(2)
        for _ in 0..<50 {
            let device = try fixture.authority.sign(
                [
                    fixture.leaf(),
                    .remoteAttestation(organization: "TEE", key: .privateKey(P256.Signing.PrivateKey())), .droidCA3,
                    .droidCA2,
                ], under: .remote, at: Fixture.time)
            #expect(code(Array(device.prefix(2)) + authorities, verifier) == nil)
        }
        #expect(verifier.verified.count == 3)
    }

    @Test("the cache is bounded, and a flood of attestation certificates does not push authorities out")
    func flood() throws {
        let certificate = try AttestationCertificate(der: try #require(try factory().last))
        func step(_ number: Int) -> SignatureStep {
            SignatureStep(of: certificate, issuerKeyDigest: withUnsafeBytes(of: number) { Array($0) })
        }
        let steps = VerifiedSteps(authorityCapacity: 8, attestationCapacity: 16)
        steps.insert(authorities: [step(-1)], attestation: nil)
        for number in 0..<1000 {
            steps.insert(authorities: [], attestation: step(number))
            #expect(steps.count <= 1 + 16)
            #expect(steps.contains(step(number)))
        }
        #expect(steps.contains(step(-1)))
        #expect(!steps.contains(step(0)))
        for number in 1000..<2000 {
            steps.insert(authorities: [step(number)], attestation: nil)
            #expect(steps.count <= 8 + 16)
        }
        #expect(!steps.contains(step(-1)))
    }

    @Test("the cache evicts unused entries first")
    func recentUse() throws {
        let certificate = try AttestationCertificate(der: try #require(try factory().last))
        func step(_ number: UInt8) -> SignatureStep { SignatureStep(of: certificate, issuerKeyDigest: [number]) }
        var steps = RecentSteps(capacity: 4)
        steps.insert(step(0))
        steps.insert(step(1))
        for number in 2...50 as ClosedRange<UInt8> {
            steps.insert(step(number))
            let isThere = steps.contains(step(0))
            #expect(isThere, "after \(number)")
            #expect(steps.count <= 4)
        }
        // Inserting an entry again uses no room.
        for _ in 0..<10 { steps.insert(step(50)) }
        let found = [0, 1, 50].map { steps.contains(step($0)) }
        #expect(found == [true, false, true])
    }

    @Test("a cache of any capacity holds at least the last entry", arguments: [-1, 0, 1, 2, 3])
    func smallCapacities(capacity: Int) throws {
        let certificate = try AttestationCertificate(der: try #require(try factory().last))
        var steps = RecentSteps(capacity: capacity)
        for number in 0..<5 as Range<UInt8> {
            let step = SignatureStep(of: certificate, issuerKeyDigest: [number])
            let before = steps.contains(step)
            steps.insert(step)
            let after = steps.contains(step)
            #expect(!before && after)
            #expect(steps.count <= max(2, capacity))
        }
    }

    @Test("threads share one cache")
    func concurrently() async throws {
        let verifier = try verifier()
        let chains = [try factory(), try remote(), try factory(includesRoot: false)]
        let codes = await withTaskGroup(of: [KeyAttestationError.Code?].self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<20).map { code(chains[$0 % 3], verifier) } }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(codes.count == 160 && codes.allSatisfy { $0 == nil })
    }
}
