import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// Every policy for attestations, assertions and receipts, with values that it accepts and values that it refuses.
@Suite struct Policies {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let app = "TEAMID1234.com.example.app"
    private static let authority = try? AppleAuthority(from: now - 30 * 86400)

    private func device(_ system: AppleSystem, _ environment: AttestEnvironment = .production) throws -> AppleDevice {
        AppleDevice(
            system: system,
            app: AppleApp(appID: Self.app, environment: environment == .production ? .production : .development),
            authority: try #require(Self.authority))
    }

    private func anchors() throws -> TrustAnchors {
        let authority = try #require(Self.authority)
        return try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
    }

    /// The refusal of an attestation of this device, verified `late` seconds after its creation; nil if it is accepted.
    private func attestation(
        _ system: AppleSystem = .iOS("27.0.1"), _ environment: AttestEnvironment = .production,
        late: TimeInterval = 0, options change: (inout AppleAttestationOptions) -> Void = { _ in },
        policy changePolicy: (inout AppAttestPolicy) -> Void
    ) throws -> AppAttestError.Code? {
        var options = AppleAttestationOptions()
        change(&options)
        let key = AppleAttestKey()
        let object = try device(system, environment).attest(key, clientDataHash: [1], at: Self.now, options: options)
        var policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.app))])
        changePolicy(&policy)
        let verifier = AttestationVerifier(policy: policy, trustAnchors: try anchors())
        let keyID = try #require(KeyID(key.keyID))
        return code {
            try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash([1]), at: Self.now + late)
        }
    }

    private func assertion(
        _ system: AppleSystem = .iOS("27.0.1"), policy changePolicy: (inout AppAttestPolicy) -> Void
    ) throws -> AppAttestError.Code? {
        var key = AppleAttestKey()
        let object = try AssertionObject(parsing: try device(system).assert(&key, clientDataHash: [1]))
        var policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.app))])
        changePolicy(&policy)
        let publicKey = key.privateKey.publicKey
        return code {
            try AssertionVerifier(policy: policy).verify(
                object, clientDataHash: ClientDataHash([1]), publicKey: publicKey, attestedExtensions: true,
                previousCounter: 0)
        }
    }

    @Test func `only the apps of the policy are accepted`() throws {
        let other = try #require(AppleAppID("TEAMID1234.com.example.other"))
        #expect(try attestation { $0.appIDs.insert(other) } == nil)
        #expect(try attestation { $0.appIDs = [other] } == .appIDNotAllowed)
        #expect(try attestation { $0.appIDs = [] } == .appIDNotAllowed)
        #expect(try assertion { $0.appIDs.insert(other) } == nil)
        #expect(try assertion { $0.appIDs = [other] } == .appIDNotAllowed)
    }

    @Test func `only the environments of the policy are accepted`() throws {
        #expect(try attestation(.iOS("27.0"), .development) { _ in } == .environmentNotAllowed)
        #expect(try attestation(.iOS("27.0"), .development) { $0.environments = [.development] } == nil)
        #expect(try attestation { $0.environments = [.development] } == .environmentNotAllowed)
        #expect(try attestation { $0.environments = [.development, .production] } == nil)
    }

    @Test func `only the categories of the policy are accepted`() throws {
        #expect(try attestation { $0.categories = [.appStore] } == nil)
        #expect(try attestation { $0.categories = [.testFlight, .development] } == .categoryNotAllowed)
        #expect(try assertion { $0.categories = [.appStore] } == nil)
        #expect(try assertion { $0.categories = [.testFlight] } == .categoryNotAllowed)
    }

    @Test func `a category without a name is refused unless the policy allows it`() throws {
        func refusal(_ number: UInt32, _ change: (inout AppAttestPolicy) -> Void) throws -> AppAttestError.Code? {
            let octets = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
            return try attestation(
                options: { options in
                    options.extensions = { _ in CBORMap([.init("apple_validation_category_01", .bytes(octets))]) }
                }, policy: change)
        }
        // The categories that Apple documents, except 0.
        for number in [1, 2, 3, 4, 5, 6, 10] as [UInt32] { #expect(try refusal(number) { _ in } == nil) }
        for number in [0, 7, 8, 9, 11, 255, .max] as [UInt32] {
            #expect(try refusal(number) { _ in } == .categoryNotAllowed)
            let unknown = try refusal(number) { $0.acceptsUnknownCategories = true }
            #expect(unknown == (number == 0 ? .categoryNotAllowed : nil))
            // A category that the policy names is accepted, known or not.
            #expect(try refusal(number) { $0.categories = [ValidationCategory(rawValue: number)] } == nil)
        }
        // A documented category that the policy leaves out stays refused.
        #expect(
            try refusal(3) {
                $0.categories = [.appStore]
                $0.acceptsUnknownCategories = true
            } == .categoryNotAllowed)
        #expect(
            try refusal(7) {
                $0.categories = [.appStore]
                $0.acceptsUnknownCategories = true
            } == nil)
    }

    @Test func `a bundle version below the minimum is refused`() throws {
        for (minimum, isAccepted) in [("1", true), ("0.9.9", true), ("9999", false), ("1.0.0.1", false)] {
            let minimum = try #require(BundleVersion(minimum))
            let expected: AppAttestError.Code? = isAccepted ? nil : .bundleVersionTooOld
            #expect(try attestation { $0.minimumBundleVersion = minimum } == expected)
            #expect(try assertion { $0.minimumBundleVersion = minimum } == expected)
        }
    }

    @Test(arguments: ["27.0.1", "26.3", "14.0"]) func `a device that does not say what the policy requires is refused`(
        version: String
    ) throws {
        let says = version == "27.0.1"
        let system = AppleSystem.iOS(version)
        #expect(try attestation(system) { $0.requiresCategory = true } == (says ? nil : .categoryMissing))
        #expect(try attestation(system) { $0.requiresBundleVersion = true } == (says ? nil : .bundleVersionMissing))
        #expect(try assertion(system) { $0.requiresCategory = true } == (says ? nil : .categoryMissing))
        #expect(try assertion(system) { $0.requiresBundleVersion = true } == (says ? nil : .bundleVersionMissing))
        // A value that the policy does not require is still judged if the device sends it.
        #expect(try attestation(system) { $0.categories = [.testFlight] } == (says ? .categoryNotAllowed : nil))
    }

    @Test func `a Mac's access control is judged unless the policy says otherwise`() throws {
        let open: (inout AppleAttestationOptions) -> Void = { $0.accessControl = [] }
        #expect(try attestation(.macOS("27.0")) { _ in } == nil)
        #expect(try attestation(.macOS("27.0"), options: open) { _ in } == .accessControlMissing)
        #expect(try attestation(.macOS("27.0"), options: open) { $0.requiresMacAccessControl = false } == nil)
        #expect(try attestation(.iOS("27.0"), options: open) { _ in } == nil)
    }

    @Test func `the leeway of the clock applies to the dates of certificates`() throws {
        let short: (inout AppleAttestationOptions) -> Void = { $0.notAfter = Self.now + 10 }
        #expect(try attestation(late: 10, options: short) { _ in } == nil)
        #expect(try attestation(late: 11, options: short) { _ in } == .certificateExpired)
        #expect(try attestation(late: 11, options: short) { $0.clockLeeway = 1 } == nil)
        #expect(try attestation(late: 12, options: short) { $0.clockLeeway = 1 } == .certificateExpired)
        let early: (inout AppleAttestationOptions) -> Void = { $0.notBefore = Self.now + 5 }
        #expect(try attestation(options: early) { _ in } == .certificateNotYetValid)
        #expect(try attestation(options: early) { $0.clockLeeway = 5 } == nil)
    }

    @Test func `a receipt's age is judged by the policy for receipts`() throws {
        let key = AppleAttestKey()
        let object = try AttestationObject(parsing: device(.iOS("27.0")).attest(key, clientDataHash: [1], at: Self.now))
        let expected = ReceiptExpectations(
            appIDs: [try #require(AppleAppID(Self.app))], keyID: try #require(KeyID(key.keyID)),
            clientDataHash: ClientDataHash([1]), environment: .production)
        func receipt(_ policy: ReceiptVerifier.Policy, late: TimeInterval) throws -> AppAttestError.Code? {
            let verifier = ReceiptVerifier(policy: policy, trustAnchors: try anchors())
            return code { try verifier.verify(object.receipt, against: expected, at: Self.now + late) }
        }
        #expect(try receipt(.init(), late: 300) == nil)
        #expect(try receipt(.init(), late: 301) == .receiptTooOld)
        #expect(try receipt(.init(maximumAge: 1000), late: 1000) == nil)
        #expect(try receipt(.init(maximumAge: 1000), late: 1001) == .receiptTooOld)
        #expect(try receipt(.init(maximumAge: 10_000_000_000), late: 400 * 86400) == .receiptExpired)
        #expect(try receipt(.init(maximumAge: 10_000_000_000), late: 90 * 86400) == .receiptExpired)
        #expect(try receipt(.init(maximumAge: 10_000_000_000), late: 90 * 86400 - 0.001) == nil)
        #expect(try receipt(.init(), late: 300.001) == .receiptTooOld)
        #expect(try receipt(.init(), late: -60.001) == .createdInFuture)
        #expect(try receipt(.stored, late: 400 * 86400) == nil)
        #expect(try receipt(.init(), late: -60) == nil)
        #expect(try receipt(.init(), late: -61) == .createdInFuture)
        #expect(try receipt(.init(clockLeeway: 120), late: -61) == nil)
        #expect(try receipt(.stored, late: -61) == .createdInFuture)
    }

    @Test func `the defaults refuse what the caller did not allow`() throws {
        let policy = AppAttestPolicy(appIDs: [])
        #expect(policy.environments == [.production])
        #expect(policy.categories == ValidationCategory.documented && !policy.categories.contains(.invalid))
        #expect(policy.requiresMacAccessControl && policy.clockLeeway == 0)
        #expect(!policy.acceptsUnknownCategories && !policy.requiresCategory && !policy.requiresBundleVersion)
        #expect(ReceiptVerifier.Policy().maximumAge == 300)
    }
}
