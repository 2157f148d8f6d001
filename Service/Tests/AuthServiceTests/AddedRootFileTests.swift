import AttestationTestKit
import AuthContract
import AuthService
import Bytes
import Crypto
import Foundation
import SwiftASN1
import Testing
import X509

/// The files that are accepted as trust anchors, and the errors for all others.
@Suite struct AddedRootFileTests {
    private func refusal(_ text: String, for use: AddedRoot.Use = .googleKeyAttestations) -> String? {
        do {
            _ = try AddedRoots(text, for: use)
            return nil
        } catch { return "\(error)" }
    }

    @Test(arguments: AddedRoot.Use.allCases)
    func `a self-signed authority is a root, with its thumbprint, dates and label`(use: AddedRoot.Use) throws {
        let text = try RootFile().pem()
        let der = Array(try Certificate(pemEncoded: text).serializeAsPEM().derBytes)
        let root = try #require(try AddedRoots(text, for: use).added.first)
        let digest = Hexadecimal.encode(SHA256.hash(data: der))
        #expect(root.thumbprint == digest && root.label == "root:\(digest.prefix(8))")
        #expect(root.subject.contains("New Root CA") && root.use == use && !root.isBuiltIn)
        #expect(root.notBefore == World.start - 86_400 && root.notAfter == World.start + 3650 * 86_400)
    }

    @Test(arguments: AddedRoot.Use.allCases)
    func `what is no root is refused, with what to do`(use: AddedRoot.Use) throws {
        let (root, other) = (RootFile(), RootFile())
        let leaf = RootFile(isAuthority: false)
        let issued = RootFile(issuer: (other.key, "Another CA"))
        // The names in this certificate say that it is self-signed, but another key signed it.
        let forged = RootFile(issuer: (other.key, nil))
        let cases: [(String, String)] = [
            ("", "-----BEGIN CERTIFICATE-----"), ("x", "-----BEGIN CERTIFICATE-----"),
            (try root.pem() + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "something else"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "download it again"),
            (try leaf.pem(), "is not an authority"), (try issued.pem(), "is not self-signed"),
            (try forged.pem(), "is not self-signed"),
            (try RootFile(maySignCertificates: false).pem(), "may not sign certificates"),
            (try RootFile(days: -20 ... -1).pem(), "expired at"),
            (try RootFile(pathLength: 0).pem(), "path length 0"),
            (try RootFile(hasUnknownCriticalExtension: true).pem(), "critical extension 1.2.3.4"),
            (try RootFile(hasSubject: false).pem(), "has no subject"),
            ("Subject: New Root CA\n" + (try root.pem()), "something else"),
            (
                try root.pem() + other.pem().replacing("-----", with: "----"), "something else"
            ),
            (try root.pem() + root.pem(), "a key is listed once"),
            (try (0...16).map { _ in try RootFile().pem() }.joined(), "17 certificates"),
            (
                try RootFile(key: .init(P521.Signing.PrivateKey())).pem(),
                "its key must be ECDSA on P-256 or P-384"
            ),
        ]
        for (text, sentence) in cases {
            #expect(refusal(text, for: use)?.contains(sentence) == true, "\(refusal(text, for: use) ?? "accepted")")
        }
    }

    @Test func `an expired root is left out if it must not end the service, and the others are trusted`() throws {
        let (valid, key) = (RootFile(), Certificate.PrivateKey(P384.Signing.PrivateKey()))
        let text = try RootFile(days: -20 ... -1, key: key).pem() + valid.pem() + RootFile(key: key).pem()
        var roots = AddedRoots()
        try roots.add(text, for: .googleKeyAttestations, at: World.start, leavingOutExpired: true)
        #expect(roots.expired.count == 1 && roots.added.count == 2 && roots.all.count == 2)
        #expect(roots.added.allSatisfy { $0.notAfter > World.start })
    }

    @Test func `a file without a root says what to do`() {
        #expect(refusal("")?.contains("If no root is left, remove the setting") == true)
    }

    @Test func `a root may allow the one intermediate that Apple has`() throws {
        #expect(refusal(try RootFile(pathLength: 1).pem(), for: .appleAttestations) == nil)
    }

    @Test func `a root that is valid later may be added before`() throws {
        #expect(refusal(try RootFile(days: 10...3650).pem()) == nil)
    }

    @Test func `a root of the other vendor is refused`() throws {
        let (apple, google) = (RootFile(organization: "Apple Inc."), RootFile(organization: "Google LLC"))
        #expect(refusal(try apple.pem(), for: .googleKeyAttestations)?.contains("other vendor") == true)
        #expect(refusal(try google.pem(), for: .appleAttestations)?.contains("other vendor") == true)
        let spaced = RootFile(organization: " Google LLC")
        #expect(refusal(try spaced.pem(), for: .appleAttestations)?.contains("other vendor") == true)
        #expect(refusal(try google.pem(), for: .appleReceipts)?.contains("other vendor") == true)
        #expect(refusal(try apple.pem(), for: .appleReceipts) == nil)
        #expect(refusal(try google.pem(), for: .googleKeyAttestations) == nil)
    }

    @Test func `one key has one use`() throws {
        let text = try RootFile().pem()
        var roots = try AddedRoots(text, for: .appleAttestations)
        let error = #expect(throws: ContractError.self) { try roots.add(text, for: .appleReceipts, at: World.start) }
        #expect(error?.description.contains("providers.apple_roots") == true)
    }

    /// The text of one of Google's certificates, from the tests of AndroidKeyAttestation.
    private func google(_ name: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Tests/AndroidKeyAttestationTests/Vectors/roots/\(name)")
        return try String(contentsOf: file, encoding: .utf8)
    }

    @Test func `a built-in root changes nothing, also an expired certificate of its key`() throws {
        // Google's first certificate of the RSA key expired in May 2026.
        let text = try google("google-hw-rsa4096-2016-e8fa196314d2fa18.pem")
        let roots = try AddedRoots(text + text, for: .googleKeyAttestations)
        #expect(roots.all.count == 2 && roots.all.allSatisfy(\.isBuiltIn) && roots.added.isEmpty)
        #expect(refusal(text, for: .appleAttestations)?.contains("providers.google_roots") == true)
    }

    @Test(arguments: AddedRoot.Use.allCases)
    func `a software root is refused by its key`(use: AddedRoot.Use) throws {
        #expect(refusal(try google("google-software-ec-p256.pem"), for: use)?.contains("software root") == true)
        #expect(refusal(try google("google-software-rsa1024.pem")) != nil)
    }
}
