import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// Attestations with one fault, each refused for that fault. The devices are simulated by the test kit, under an authority of the
/// tests.
@Suite struct ForgedAttestations {
    static let now = Date(timeIntervalSince1970: 1_790_000_000)

    struct Forgery: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: AppAttestError.Code
        var system = AppleSystem.iOS("27.0.1")
        var authority: (@Sendable (inout AppleAuthority.Options) -> Void)?
        let change: @Sendable (inout AppleAttestationOptions) -> Void

        init(
            _ name: String, _ code: AppAttestError.Code, _ system: AppleSystem = .iOS("27.0.1"),
            _ change: @escaping @Sendable (inout AppleAttestationOptions) -> Void = { _ in }
        ) {
            testDescription = name
            self.code = code
            self.system = system
            self.change = change
        }

        /// A new authority if the forgery changes its options, otherwise the shared one. Creating an authority takes longer than any check.
        func makeAuthority() throws -> AppleAuthority {
            guard let authority else { return try #require(ForgedAttestations.authority) }
            var options = AppleAuthority.Options()
            authority(&options)
            return try AppleAuthority(from: ForgedAttestations.now - 30 * 86400, options: options)
        }

        static func authority(
            _ name: String, _ code: AppAttestError.Code,
            _ change: @escaping @Sendable (inout AppleAuthority.Options) -> Void
        ) -> Self {
            var forgery = Self(name, code)
            forgery.authority = change
            return forgery
        }
    }

    func refusal(
        _ forgery: Forgery, of own: AppleAuthority? = nil, change: (inout AppAttestPolicy) -> Void = { _ in }
    ) throws -> AppAttestError.Code? {
        let authority = try own ?? forgery.makeAuthority()
        var attestation = AppleAttestationOptions()
        forgery.change(&attestation)
        let device = AppleDevice(
            system: forgery.system, app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
        let key = AppleAttestKey()
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        let object = try device.attest(key, clientDataHash: hash, at: Self.now, options: attestation)
        var policy = AppAttestPolicy(appIDs: [try #require(AppleAppID("TEAMID1234.com.example.app"))])
        change(&policy)
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let verifier = AttestationVerifier(policy: policy, trustAnchors: anchors)
        let keyID = try #require(KeyID(key.keyID))
        let code = code {
            try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: Self.now)
        }
        var expected = AppAttestExpectations()
        expected.appIDs = policy.appIDs
        expected.environments = policy.environments
        expected.keyID = keyID
        expected.clientDataHash = ClientDataHash(hash)
        expected.date = Self.now
        let audit = verifier.audit(object, against: expected)
        #expect(audit.refusal?.code == code, "the audit makes the same steps")
        #expect(audit.steps.last?.outcome == (code == nil ? .passed : .failed))
        return code
    }

    @Test func `an attestation with nothing wrong verifies`() throws {
        for system in [AppleSystem.iOS("14.0"), .iOS("27.0.1"), .macOS("27.0")] {
            #expect(try refusal(Forgery("nothing wrong", .malformedObject, system)) == nil)
        }
    }

    @Test(arguments: certificates + keys + data + objects + extensions)
    func `an attestation in which one thing is wrong is refused for it`(_ forgery: Forgery) throws {
        #expect(try refusal(forgery) == forgery.code)
    }

    static func replaced(_ old: [UInt8], by new: [UInt8], in bytes: [UInt8]) -> [UInt8] {
        guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: old) }) else { return bytes }
        return bytes[..<place] + new + bytes[(place + old.count)...]
    }

    /// The root itself signs the leaf, without an intermediate.
    @Test func `a leaf that the root itself signed is refused`() throws {
        let members = try #require(Self.authority).pem.components(separatedBy: "-----BEGIN CERTIFICATE-----")
            .dropFirst()
            .map { "-----BEGIN CERTIFICATE-----" + $0 }
        let authority = try AppleAuthority(pem: ([members[0], members[0]] + members[2...]).joined())
        var forgery = Forgery("signed by the root", .untrustedChain)
        #expect(try refusal(forgery, of: authority) == .untrustedChain)
        forgery.system = .iOS("26.0")
        #expect(try refusal(forgery, of: authority) == .untrustedChain)
    }

    static let authority = try? AppleAuthority(from: now - 30 * 86400)
    static let other = try? AppleAuthority(from: now - 30 * 86400)

    static let certificates: [Forgery] = [
        Forgery("a root that is not pinned", .untrustedChain) { options in
            options.certificates = { [$0[0], other?.attestationRoot ?? []] }
        },
        .authority("an intermediate that is no authority", .issuerNotAuthority) { $0.intermediateIsAuthority = false },
        .authority("an intermediate that may not sign certificates", .wrongKeyUsage) { $0.intermediateKeyUsage = 0x80 },
        .authority("an intermediate with an unknown critical extension", .unknownCriticalExtension) {
            $0.intermediateExtensions = [.init([1, 2, 3], critical: true, [])]
        },
        .authority("an intermediate that has expired", .certificateExpired) { $0.intermediateLife = 30 * 86400 - 1 },
        Forgery("a root in the intermediate's place", .untrustedChain) { options in
            options.certificates = { [$0[0], authority?.attestationRoot ?? []] }
        },
        Forgery("a leaf of version 2", .malformedCertificate) { options in
            options.certificates = { [replaced([0xA0, 3, 2, 1, 2], by: [0xA0, 3, 2, 1, 1], in: $0[0]), $0[1]] }
        },
        Forgery("a leaf that names another algorithm than the signed one", .malformedCertificate) { options in
            options.certificates = {
                [replaced([0x04, 0x03, 0x02, 0x03], by: [0x04, 0x03, 0x03, 0x03], in: $0[0]), $0[1]]
            }
        },
        .authority("an intermediate signed over SHA-1", .malformedCertificate) { $0.intermediateAlgorithm = .sha1 },
        Forgery("a leaf signed by another intermediate of the same name", .certificateSignatureInvalid) {
            $0.signedBy = other
        },
        Forgery("a leaf one second early", .certificateNotYetValid) { $0.notBefore = now + 1 },
        Forgery("a leaf one second late", .certificateExpired) { $0.notAfter = now - 1 },
        Forgery("a leaf that is an authority", .leafIsAuthority) { $0.leafIsAuthority = true },
        Forgery("a leaf that may not sign", .wrongKeyUsage) { $0.keyUsage = 0x20 },
        Forgery("a leaf that may sign certificates", .wrongKeyUsage) { $0.keyUsage = 0xF4 },
        Forgery("a leaf for TLS clients", .wrongExtendedKeyUsage) {
            $0.extendedKeyUsage = [[1, 3, 6, 1, 5, 5, 7, 3, 2]]
        },
        Forgery("a leaf for attested keys and TLS clients", .wrongExtendedKeyUsage) {
            $0.extendedKeyUsage = [[1, 2, 840, 113635, 100, 4, 24], [1, 3, 6, 1, 5, 5, 7, 3, 2]]
        },
        Forgery("a leaf with an unknown critical extension", .unknownCriticalExtension) {
            $0.leafExtensions = [.init([1, 2, 3], critical: true, [])]
        },
        Forgery("a leaf signed over SHA-1", .malformedCertificate) { $0.leafAlgorithm = .sha1 },
        Forgery("no certificate", .wrongCertificateCount) { $0.certificates = { _ in [] } },
        Forgery("one certificate", .wrongCertificateCount) { $0.certificates = { Array($0.prefix(1)) } },
        Forgery("three certificates", .wrongCertificateCount) { $0.certificates = { $0 + [$0[1]] } },
        Forgery("the intermediate first", .untrustedChain) { $0.certificates = { $0.reversed() } },
        Forgery("the leaf twice", .untrustedChain) { $0.certificates = { [$0[0], $0[0]] } },
        Forgery("the intermediate twice", .leafIsAuthority) { $0.certificates = { [$0[1], $0[1]] } },
        Forgery("a leaf with a byte after it", .malformedCertificate) { $0.certificates = { [$0[0] + [0], $0[1]] } },
        Forgery("a leaf that is none", .malformedCertificate) { $0.certificates = { [[0x30, 0], $0[1]] } },
        Forgery("an intermediate that is none", .malformedCertificate) { $0.certificates = { [$0[0], [1, 2, 3]] } },
    ]

    static let keys: [Forgery] = [
        Forgery("no nonce", .nonceMissing) { $0.nonce = .missing },
        Forgery("the nonce extension twice", .malformedCertificate) { $0.nonce = .doubled },
        Forgery("two nonces", .nonceMalformed) { $0.nonce = .twoOctetStrings },
        Forgery("a byte after the nonce", .nonceMalformed) { $0.nonce = .trailingByte },
        Forgery("an empty nonce extension", .nonceMalformed) { $0.nonce = .other([]) },
        Forgery("another nonce", .nonceMismatch) {
            $0.nonce = .other([0x30, 0x24, 0xA1, 0x22, 0x04, 0x20] + [UInt8](repeating: 0, count: 32))
        },
        Forgery("a leaf for a key on P-384", .wrongLeafKey) { $0.leafCurve = .p384 },
        Forgery("a leaf for another key", .keyIDMismatch) { $0.leafKey = AppleAttestKey() },
        Forgery("a credential id of 31 octets", .credentialIDMismatch) {
            $0.credentialID = [UInt8](repeating: 7, count: 31)
        },
        Forgery("a credential id of 33 octets", .credentialIDMismatch) {
            $0.credentialID = [UInt8](repeating: 7, count: 33)
        },
        Forgery("another credential id", .credentialIDMismatch) { $0.credentialID = [UInt8](repeating: 7, count: 32) },
        Forgery("a credential id that claims 65535 octets", .malformedAuthenticatorData) {
            $0.credentialIDLength = 65535
        },
        Forgery("a credential id that claims 31 octets", .malformedAuthenticatorData) {
            $0.credentialID = [UInt8](repeating: 0, count: 32)
            $0.credentialIDLength = 31
        },
        // The octet that is left over, 0xA1, begins a map of one entry: the COSE key becomes its key, the extensions its value.
        Forgery("a credential id that claims 31 octets, before a map", .credentialIDMismatch) {
            $0.credentialID = [UInt8](repeating: 0xA1, count: 32)
            $0.credentialIDLength = 31
        },
        Forgery("a credential id that claims 33 octets", .malformedAuthenticatorData) { $0.credentialIDLength = 33 },
        Forgery("another COSE key", .credentialKeyMismatch) {
            let point = AppleAttestKey().x963
            $0.coseKey = { key in
                CBORMap(key.entries.map { $0.key == -2 ? .init(-2, .bytes(Array(point[1..<33]))) : $0 })
            }
        },
        Forgery("a COSE key with an entry more", .credentialKeyMismatch) {
            $0.coseKey = { CBORMap($0.entries + [.init(2, .bytes([1]))]) }
        },
        Forgery("a COSE key without an entry", .credentialKeyMismatch) {
            $0.coseKey = { CBORMap(Array($0.entries.dropFirst())) }
        },
        Forgery("a COSE key for another algorithm", .credentialKeyMismatch) {
            $0.coseKey = { key in CBORMap(key.entries.map { $0.key == 3 ? .init(3, -35) : $0 }) }
        },
        Forgery("an empty COSE key", .credentialKeyMismatch) { $0.coseKey = { _ in CBORMap() } },
        Forgery("a COSE key with an entry twice", .malformedAuthenticatorData) {
            $0.coseKey = { CBORMap($0.entries + [$0.entries[0]]) }
        },
        Forgery("another app", .appIDNotAllowed) { $0.relyingParty = "TEAMID1234.com.example.other" },
        Forgery("a leaf for another app", .appIDMismatch) { $0.leafAppID = "TEAMID1234.com.example.other" },
        Forgery("a leaf for no app", .appIDMissing) { $0.leafAppID = "" },
        Forgery("a counter of 1", .counterNotZero) { $0.counter = 1 },
        Forgery("an unknown AAGUID", .unknownEnvironment) { $0.aaguid = [UInt8](repeating: 0, count: 16) },
        Forgery("an AAGUID of the other environment", .environmentNotAllowed) {
            $0.aaguid = Array("appattestdevelop".utf8)
        },
    ]

    static func cut(_ name: String, _ count: Int) -> Forgery {
        Forgery(name, .malformedAuthenticatorData) { $0.authenticatorData = { Array($0.prefix(count)) } }
    }

    static let data: [Forgery] = [
        cut("no authenticator data", 0), cut("authenticator data of 36 bytes", 36),
        cut("authenticator data of 37 bytes", 37),
        cut("authenticator data of 54 bytes", 54), cut("authenticator data of 55 bytes", 55),
        cut("authenticator data that ends before the key", 87), cut("authenticator data that ends within the key", 100),
        cut("authenticator data that ends within the map", 170),
        Forgery("two maps", .malformedAuthenticatorData) { $0.afterExtensions = [0xA0] },
        Forgery("a byte after the map", .malformedAuthenticatorData) { $0.afterExtensions = [0] },
        Forgery("a byte after the key", .malformedAuthenticatorData, .iOS("26.0")) { $0.afterExtensions = [0] },
        Forgery("a map of indefinite length", .malformedAuthenticatorData, .iOS("26.0")) {
            $0.afterExtensions = [0xBF, 0xFF]
        },
        Forgery("a map of 2^63 entries", .malformedAuthenticatorData, .iOS("26.0")) {
            $0.afterExtensions = [0xBB, 0x80, 0, 0, 0, 0, 0, 0, 0]
        },
        Forgery("a map nested too deeply", .malformedAuthenticatorData, .iOS("26.0")) {
            $0.afterExtensions =
                [UInt8](repeating: 0xA1, count: 1) + [0x61, 0x61] + [UInt8](repeating: 0x81, count: 60) + [0]
        },
    ]

    static func encoded(
        _ name: String, _ code: AppAttestError.Code = .malformedObject,
        _ encode: @escaping @Sendable (CBORMap) -> [UInt8]
    ) -> Forgery {
        Forgery(name, code) { $0.encode = encode }
    }

    static let objects: [Forgery] = [
        Forgery("another format", .unknownFormat) { $0.format = "apple" },
        encoded("an indefinite map") { map in [0xBF] + CBORValue.map(map).encoded.dropFirst() + [0xFF] },
        encoded("a head longer than it need be") { map in [0xB8, 3] + CBORValue.map(map).encoded.dropFirst() },
        encoded("a member twice") { CBORValue.map(CBORMap($0.entries + [$0.entries[0]])).encoded },
        encoded("a member more") { CBORValue.map(CBORMap($0.entries + [.init("more", 1)])).encoded },
        encoded("a member less") { CBORValue.map(CBORMap(Array($0.entries.dropLast()))).encoded },
        encoded("a byte after the object") { CBORValue.map($0).encoded + [0] },
        encoded("an array instead of a map") { map in CBORValue.array([.map(map)]).encoded },
        encoded("a nesting bomb") { _ in [UInt8](repeating: 0x81, count: 10_000) },
        encoded("a length of 2^63") { _ in [0xA3, 0x63, 0x66, 0x6D, 0x74, 0x7B, 0x80, 0, 0, 0, 0, 0, 0, 0] },
        encoded("nothing") { _ in [] },
        encoded("more than 16 KiB", .tooLarge) { CBORValue.map($0).encoded + [UInt8](repeating: 0, count: 16 * 1024) },
        encoded("certificates that are text") { map in
            CBORValue.map(
                CBORMap([
                    map.entries[0], .init("attStmt", ["x5c": ["a", "b"], "receipt": .bytes([])]), map.entries[2],
                ])
            ).encoded
        },
    ]

    static func category(_ name: String, _ code: AppAttestError.Code, _ value: CBORValue) -> Forgery {
        Forgery(name, code) { options in
            options.extensions = { _ in CBORMap([.init("apple_validation_category_01", value)]) }
        }
    }

    static let extensions: [Forgery] = [
        category("a category of 3 octets", .malformedExtensions, .bytes([4, 0, 0])),
        category("a category of 5 octets", .malformedExtensions, .bytes([4, 0, 0, 0, 0])),
        category("a category of text", .malformedExtensions, "4"),
        category("a category beyond 32 bits", .malformedExtensions, .unsigned(1 << 32)),
        category("a negative category", .malformedExtensions, -4),
        category("category 7", .categoryNotAllowed, .bytes([7, 0, 0, 0])),
        category("category 0", .categoryNotAllowed, .bytes([0, 0, 0, 0])),
        category("a category that is big-endian", .categoryNotAllowed, .bytes([0, 0, 0, 4])),
        Forgery("a category twice", .malformedAuthenticatorData) { options in
            options.extensions = {
                CBORMap($0.entries + [.init("apple_validation_category_01", .bytes([4, 0, 0, 0]))])
            }
        },
        Forgery("a bundle version of octets", .malformedExtensions) { options in
            options.extensions = { _ in CBORMap([.init("apple_bundle_version_01", .bytes([0x31]))]) }
        },
        Forgery("a Mac without access control", .accessControlMissing, .macOS("27.0")) { $0.accessControl = [] },
        Forgery("a Mac with an iPhone's access control", .accessControlMismatch, .macOS("27.0")) {
            $0.accessControl = AppleAccessControl.iPhone
        },
    ]

    @Test func `what differs between real objects is tolerated`() throws {
        let tolerated: [Forgery] = [
            Self.category("a category as an unsigned integer", .malformedObject, 4),
            Forgery("unknown entries", .malformedObject) { options in
                options.extensions = {
                    CBORMap($0.entries + [.init("apple_cd_hash_hash_01", .bytes([1])), .init(1, 2)])
                }
            },
            Forgery("an empty map", .malformedObject) { $0.extensions = { _ in CBORMap() } },
            Forgery("flags of no meaning", .malformedObject) { $0.flags = 0 },
            Forgery("other flags of no meaning", .malformedObject) { $0.flags = 0xFF },
            Forgery("an iPhone with a Mac's access control", .malformedObject) {
                $0.accessControl = AppleAccessControl.mac
            },
            Forgery("the COSE key in another order", .malformedObject) {
                $0.coseKey = { CBORMap($0.entries.reversed()) }
            },
            Forgery("the members in another order", .malformedObject) { options in
                options.encode = { CBORValue.map(CBORMap($0.entries.reversed())).encoded }
            },
            Forgery("a last second", .malformedObject) { $0.notAfter = Self.now },
            Forgery("a first second", .malformedObject) { $0.notBefore = Self.now },
            .authority("no path length", .malformedObject) { $0.intermediatePathLength = nil },
        ]
        for forgery in tolerated { #expect(try refusal(forgery) == nil, "\(forgery.testDescription)") }
    }

    @Test func `an attestation is judged by the policy`() throws {
        let device = Forgery("", .malformedObject)
        let old = Forgery("", .malformedObject, .iOS("26.0"))
        let mac = Forgery("", .malformedObject, .macOS("27.0")) { $0.accessControl = [] }
        #expect(try refusal(mac) { $0.requiresMacAccessControl = false } == nil)
        #expect(try refusal(device) { $0.categories = [.testFlight] } == .categoryNotAllowed)
        #expect(try refusal(old) { $0.categories = [.testFlight] } == nil)
        #expect(try refusal(old) { $0.requiresCategory = true } == .categoryMissing)
        #expect(try refusal(device) { $0.minimumBundleVersion = BundleVersion("2") } == .bundleVersionTooOld)
        #expect(try refusal(device) { $0.environments = [] } == .environmentNotAllowed)
    }

    /// Apple certifies the authenticator data and the client data hash as one byte sequence. So a sender can move bytes from the
    /// start of the hash to the end of the data.
    @Test(arguments: ["14.0", "18.3.1", "26.2", "26.3"])
    func `a map that was passed before the hash is not the device's own`(version: String) throws {
        let authority = try #require(Self.authority)
        let app = try #require(AppleAppID("TEAMID1234.com.example.app"))
        let device = AppleDevice(system: .iOS(version), app: AppleApp(appID: app.text), authority: authority)
        let map =
            (["apple_validation_category_01": .bytes([4, 0, 0, 0]), "apple_bundle_version_01": "9999"] as CBORValue)
            .encoded
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        let key = AppleAttestKey()
        var options = AppleAttestationOptions()
        options.encode = { members in
            CBORValue.map(
                CBORMap(
                    members.entries.map { entry in
                        guard entry.key == "authData", case .bytes(let data) = entry.value else { return entry }
                        return .init("authData", .bytes(data + map))
                    })
            ).encoded
        }
        let object = try device.attest(key, clientDataHash: map + hash, at: Self.now, options: options)
        var policy = AppAttestPolicy(appIDs: [app], categories: [.appStore])
        policy.requiresCategory = true
        policy.minimumBundleVersion = BundleVersion("9999")
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let verifier = AttestationVerifier(policy: policy, trustAnchors: anchors)
        let keyID = try #require(KeyID(key.keyID))
        #expect(
            code { try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: Self.now) }
                == .unexpectedExtensions)
    }

    /// The cache remembers that the signature of an intermediate is valid, but not its dates.
    @Test func `a cached intermediate still expires`() throws {
        let authority = try AppleAuthority(from: Self.now - 30 * 86400)
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let app = try #require(AppleAppID("TEAMID1234.com.example.app"))
        let verifier = AttestationVerifier(policy: AppAttestPolicy(appIDs: [app]), trustAnchors: anchors)
        let device = AppleDevice(system: .iOS("27.0"), app: AppleApp(appID: app.text), authority: authority)
        let key = AppleAttestKey()
        let keyID = try #require(KeyID(key.keyID))
        func refusal(at date: Date) throws -> AppAttestError.Code? {
            var options = AppleAttestationOptions()
            options.notAfter = date + 86400
            let object = try device.attest(key, clientDataHash: [], at: date, options: options)
            return code { try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash([]), at: date) }
        }
        #expect(try refusal(at: Self.now) == nil)
        #expect(try refusal(at: Self.now + 11 * 365 * 86400) == .certificateExpired)
        #expect(try refusal(at: Self.now) == nil)
    }
}
