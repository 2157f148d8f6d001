import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// An assertion signs authenticator data *followed by* the client data hash. On systems that append no map, an attacker who
/// controls the app can pass a map at the start of the hash, and later send it behind the 37 bytes of authenticator data.
@Suite("A map that was moved into an assertion")
struct MovedMapTests {
    private static let appID = "TEAMID1234.com.example.app"
    private static let authority = try? AppleAuthority(from: Date(timeIntervalSince1970: 1_790_000_000))
    private static let map =
        ([
            "apple_bundle_version_01": "9999", "apple_validation_category_01": .bytes([4, 0, 0, 0]),
        ] as CBORValue).encoded

    /// An assertion that a device without maps signed over `map || hash`, and that an attacker sends with the map
    /// after the 37 bytes of authenticator data.
    private func moved(
        _ map: [UInt8] = map, hash: [UInt8], system: AppleSystem = .iOS("26.4")
    ) throws -> (object: AssertionObject, key: P256.Signing.PublicKey) {
        let device = AppleDevice(
            system: system, app: AppleApp(appID: Self.appID), authority: try #require(Self.authority))
        var key = AppleAttestKey()
        var options = AppleAssertionOptions()
        options.movedFromHash = map
        let bytes = try device.assert(&key, clientDataHash: hash, options: options)
        return (try AssertionObject(parsing: bytes), key.privateKey.publicKey)
    }

    private func verify(
        _ sent: (object: AssertionObject, key: P256.Signing.PublicKey), hash: [UInt8], attested: Bool,
        _ change: (inout AppAttestPolicy) -> Void = { _ in }
    ) throws -> Result<VerifiedAssertion, any Error> {
        var policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.appID))])
        change(&policy)
        return Result {
            try AssertionVerifier(policy: policy).verify(
                sent.object, clientDataHash: ClientDataHash(hash), publicKey: sent.key, attestedExtensions: attested,
                previousCounter: 0)
        }
    }

    @Test("the map of a key whose attestation carried none proves neither category nor version")
    func provesNothing() throws {
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        let sent = try moved(hash: hash)
        func refusal(attested: Bool, _ change: (inout AppAttestPolicy) -> Void) throws -> AppAttestError.Code? {
            let result = try verify(sent, hash: hash, attested: attested, change)
            return code { try result.get() }
        }
        #expect(try refusal(attested: false) { $0.requiresCategory = true } == .categoryMissing)
        #expect(
            try refusal(attested: false) {
                $0.requiresBundleVersion = true
                $0.minimumBundleVersion = BundleVersion("2")
            } == .bundleVersionMissing)
        #expect(try refusal(attested: false) { _ in } == nil)
    }

    @Test("an unproven map is exposed as unproven, and a proven one as proven")
    func exposed() throws {
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        let sent = try moved(hash: hash)
        let unproven = try verify(sent, hash: hash, attested: false).get()
        #expect(unproven.extensions == nil)
        #expect(unproven.unprovenExtensions?.bundleVersion == "9999")
        #expect(unproven.unprovenExtensions?.category == .appStore)
        let proven = try verify(sent, hash: hash, attested: true).get()
        #expect(proven.extensions?.bundleVersion == "9999")
        #expect(proven.unprovenExtensions == nil)
    }

    @Test("policy judges an assertion with an unproven map as one without a map")
    func judgedAsAbsent() throws {
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        let old =
            (["apple_bundle_version_01": "1", "apple_validation_category_01": .bytes([7, 0, 0, 0])] as CBORValue)
            .encoded
        let sent = try moved(old, hash: hash)
        let policy: (inout AppAttestPolicy) -> Void = {
            $0.categories = [.appStore]
            $0.minimumBundleVersion = BundleVersion("2")
        }
        let unproven = try verify(sent, hash: hash, attested: false, policy)
        #expect(code { try unproven.get() } == nil)
        let proven = try verify(sent, hash: hash, attested: true, policy)
        #expect(code { try proven.get() } == .categoryNotAllowed)
    }

    @Test("a malformed map is refused, proven or not", arguments: [true, false])
    func malformed(attested: Bool) throws {
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        for map in [
            ["apple_validation_category_01": .bytes([4, 0, 0])], ["apple_bundle_version_01": .bytes([0x31])],
        ] as [CBORValue] {
            let result = try verify(try moved(map.encoded, hash: hash), hash: hash, attested: attested)
            #expect(code { try result.get() } == .malformedExtensions)
        }
    }

    @Test("a map that is moved behind the device's own is a second one, which is refused")
    func secondMap() throws {
        let hash = Array(SHA256.hash(data: [1, 2, 3]))
        #expect(code { try moved(hash: hash, system: .iOS("27.0.1")) } == .malformedAuthenticatorData)
    }

    @Test("an attestation says whether it carried a map, for the caller to store", arguments: ["26.4", "27.0"])
    func attested(version: String) throws {
        let authority = try #require(Self.authority)
        let device = AppleDevice(system: .iOS(version), app: AppleApp(appID: Self.appID), authority: authority)
        let key = AppleAttestKey()
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let object = try device.attest(key, clientDataHash: [1], at: now)
        let anchors = try #require(TrustAnchors(pem: authority.rootsPEM))
        let policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.appID))])
        let attestation = try AttestationVerifier(policy: policy, trustAnchors: anchors).verify(
            object, keyID: #require(KeyID(key.keyID)), clientDataHash: ClientDataHash([1]), at: now)
        #expect(attestation.attestedExtensions == (version == "27.0"))
    }
}
