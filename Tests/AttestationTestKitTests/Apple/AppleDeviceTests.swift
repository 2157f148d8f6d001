import AppAttest
import AttestationTestKit
import Crypto
import Foundation
import Testing

@Suite struct AppleDevices {
    static let now = Date(timeIntervalSince1970: 1_790_000_000)
    static let systems: [AppleSystem] = [
        .iOS("14.0"), .iOS("15.4"), .iOS("17.5.1"), .iOS("18.0"), .iOS("26.1"), .iOS("26.2"), .iOS("26.3"),
        .iOS("27.0"),
        .iOS("27.0.1"), .macOS("27.0"), .macOS("27.2"),
    ]

    let authority: AppleAuthority
    let app = AppleApp(appID: "TEAMID1234.com.example.app", bundleVersion: "1314")
    let hash = Array(SHA256.hash(data: Array("challenge".utf8)))

    init() throws {
        authority = try AppleAuthority(from: Self.now - 365 * 86400, options: .livingSigner)
    }

    func policy() throws -> AppAttestPolicy { AppAttestPolicy(appIDs: [try #require(AppleAppID(app.appID))]) }

    func verify(_ key: AppleAttestKey, _ device: AppleDevice, at date: Date = now) throws -> VerifiedAttestation {
        let object = try device.attest(key, clientDataHash: hash, at: date)
        return try AttestationVerifier(policy: policy(), trustAnchors: authority.anchors()).verify(
            object, keyID: #require(KeyID(key.keyID)), clientDataHash: ClientDataHash(hash), at: date)
    }

    @Test(arguments: systems) func `a device attests as a real one does`(_ system: AppleSystem) throws {
        let device = AppleDevice(system: system, app: app, authority: authority)
        let attestation = try verify(AppleAttestKey(), device)
        #expect(attestation.systemVersion == system.version)
        #expect(attestation.environment == .production)
        let isNew = system.version.hasPrefix("27")
        #expect(attestation.category == (isNew ? .appStore : nil))
        #expect(attestation.bundleVersion == (isNew ? "1314" : nil))
        let namesPlatform = (Int(system.version.prefix(2)) ?? 0) >= 18
        #expect(attestation.platform?.rawValue == (namesPlatform ? system.platform.rawValue : nil))

        let receipt = try ReceiptVerifier(trustAnchors: authority.anchors()).verify(
            attestation.receipt, against: ReceiptExpectations(of: attestation), at: Self.now)
        #expect(receipt.fields.kind == .attest)
        #expect(receipt.fields.expirationTime == Self.now + 90 * 86400)
    }

    @Test(arguments: systems) func `a device asserts and counts`(_ system: AppleSystem) throws {
        let device = AppleDevice(system: system, app: app, authority: authority)
        var key = AppleAttestKey()
        let verifier = AssertionVerifier(policy: try policy())
        var stored: UInt32 = 0
        for _ in 0..<3 {
            let object = try AssertionObject(parsing: device.assert(&key, clientDataHash: hash))
            let assertion = try verifier.verify(
                object, clientDataHash: ClientDataHash(hash), publicKey: key.privateKey.publicKey,
                attestedExtensions: true, previousCounter: stored)
            #expect(assertion.counter == stored + 1)
            stored = assertion.counter
        }
        #expect(key.counter == 3)
    }

    @Test func `a receipt is exchanged for one with a metric`() throws {
        let device = AppleDevice(system: .iOS("27.0.1"), app: app, authority: authority)
        let key = AppleAttestKey()
        let attestation = try verify(key, device)
        let bytes = try device.exchangedReceipt(for: key, clientDataHash: hash, riskMetric: 3, at: Self.now)
        let receipt = try ReceiptVerifier(trustAnchors: authority.anchors()).verify(
            bytes, against: ReceiptExpectations(of: attestation), at: Self.now + 10)
        #expect(receipt.fields.kind == .receipt)
        #expect(receipt.fields.riskMetric == 3)
        #expect(receipt.fields.notBefore == Self.now + 86400)
    }

    @Test func `an exchanged receipt names the certificate that it is for`() throws {
        let device = AppleDevice(system: .iOS("27.0.1"), app: app, authority: authority)
        let object = try device.attest(AppleAttestKey(), clientDataHash: hash, at: Self.now)
        let leaf = try #require(try AttestationObject(parsing: object).certificates.first)
        let receipt = try Receipt(
            parsing: device.exchangedReceipt(leaf: leaf, clientDataHash: hash, riskMetric: 3, at: Self.now))
        #expect(receipt.fields.attestedCertificate == leaf)
        #expect(receipt.fields.riskMetric == 3)
    }

    @Test func `a receipt that was made before goes out as it is`() throws {
        let device = AppleDevice(system: .iOS("27.0.1"), app: app, authority: authority)
        var options = AppleAttestationOptions()
        options.madeReceipt = [1, 2, 3]
        let object = try device.attest(AppleAttestKey(), clientDataHash: hash, at: Self.now, options: options)
        #expect(try AttestationObject(parsing: object).receipt == [1, 2, 3])
    }

    @Test func `an authority and a key are saved and loaded`() throws {
        let loaded = try AppleAuthority(pem: authority.pem)
        #expect(loaded.pem == authority.pem)
        var key = AppleAttestKey()
        key.counter = 7
        let again = try AppleAttestKey(rawRepresentation: key.rawRepresentation, counter: key.counter)
        #expect(again.keyID == key.keyID)
        let device = AppleDevice(system: .macOS("27.0"), app: app, authority: loaded)
        #expect(try verify(again, device).keyID.bytes == key.keyID)
        #expect(TrustAnchors(pem: loaded.rootsPEM)?.attestation.count == 2)
    }

    @Test func `text that is not a saved authority is not loaded`() throws {
        #expect(throws: (any Error).self) { try AppleAuthority(pem: "") }
        #expect(throws: AppleAuthority.LoadingError.self) { try AppleAuthority(pem: authority.rootsPEM) }
    }

    @Test func `another authority is not trusted`() throws {
        let other = try AppleAuthority(from: Self.now - 86400)
        let device = AppleDevice(system: .iOS("27.0"), app: app, authority: other)
        do {
            _ = try verify(AppleAttestKey(), device)
            Issue.record("verified")
        } catch let error as AppAttestError {
            #expect(error.code == .untrustedChain)
        }
    }
}

extension AppleAuthority {
    func anchors() throws -> TrustAnchors {
        try #require(TrustAnchors(attestationRoots: [attestationRoot], receiptRoots: [receiptRoot]))
    }
}

extension AppleAuthority.Options {
    static var livingSigner: Self {
        var options = Self()
        options.signerLife = 2 * 365 * 86400
        return options
    }
}
