import AppAttest
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import SQLiteStores
import StrictJSON

/// More were measured than were signed ahead.
struct OutOfRequests: Error {}

/// What verification costs, relative to a bare P-256 verification in the same run.
@main
struct Benchmarks {
    static func main() async throws {
        let key = P256.Signing.PrivateKey()
        let message = [UInt8](repeating: 7, count: 256)
        let signature = try key.signature(for: message)
        let publicKey = key.publicKey
        let bare = await measure("P-256 verify (swift-crypto)") {
            precondition(publicKey.isValidSignature(signature, for: message))
        }
        let openssl = opensslVerifyRate().map { Measurement(name: "P-256 verify (openssl speed): R", perSecond: $0) }
        var results = [openssl, bare].compactMap { $0 }
        results.append(try await bareOfMany())
        let only = Set(CommandLine.arguments.dropFirst())
        if only.isEmpty || only.contains("apple") { results += try await attestation() }
        if only.isEmpty || only.contains("requests") { results += try await requests() }
        report(results, yardstick: openssl ?? bare)
    }

    /// As a service does it: other keys and other signatures each time, which a processor cannot learn by heart.
    private static func bareOfMany() async throws -> Measurement {
        let keys = (0..<64).map { _ in P256.Signing.PrivateKey() }
        let publicKeys = keys.map(\.publicKey)
        let signed = try (0..<8192).map { index in
            let message = Array("GET\n/v1/\(index)\n1712345678\n".utf8)
            return (message, try keys[index % 64].signature(for: message))
        }
        var index = 0
        return await measure("P-256 verify (swift-crypto), 64 keys, 8,192 signatures") {
            index = (index + 1) % 8192
            precondition(publicKeys[index % 64].isValidSignature(signed[index].1, for: signed[index].0))
        }
    }

    private static func report(_ results: [Measurement], yardstick: Measurement) {
        print("what                                              per second     us each   ratio to R")
        for result in results {
            print(
                result.name.padding(toLength: 48, withPad: " ", startingAt: 0)
                    + String(
                        format: "%12.0f %11.1f %12.3f", result.perSecond, result.microseconds,
                        result.perSecond / yardstick.perSecond))
        }
    }

    /// A real attestation of an iOS 27 device, with Apple's intermediate remembered.
    private static func attestation() async throws -> [Measurement] {
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -86_400))
        let device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TESTTEAM01.com.example.app"), authority: authority)
        var key = AppleAttestKey()
        let hash = [UInt8](repeating: 1, count: 32)
        let now = Date()
        let object = try device.attest(key, clientDataHash: hash, at: now)
        guard let appID = AppAttest.AppID("TESTTEAM01.com.example.app"), let keyID = KeyID(key.keyID),
            let anchors = TrustAnchors(pem: authority.rootsPEM)
        else { fatalError("the test kit's own values") }
        let policy = AppAttestPolicy(appIDs: [appID])
        let verifier = AttestationVerifier(policy: policy, trustAnchors: anchors)
        let attestation = try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: now)
        let receipts = ReceiptVerifier(trustAnchors: anchors)
        let assertion = try device.assert(&key, clientDataHash: hash)
        let assertions = AssertionVerifier(policy: policy)
        return [
            try await measure("App Attest attestation") {
                _ = try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: now)
            },
            try await measure("App Attest assertion") {
                _ = try assertions.verify(
                    AssertionObject(parsing: assertion), clientDataHash: ClientDataHash(hash),
                    publicKey: attestation.publicKey, previousCounter: 0)
            },
            try await measure("App Attest receipt") {
                _ = try receipts.verify(attestation.receipt, against: ReceiptExpectations(of: attestation), at: now)
            },
        ]
    }

    /// A signed request through all the rules, claims kept in SQLite's journal.
    private static func requests() async throws -> [Measurement] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("benchmarks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let fleet = try await SignedFleet(folder: folder)
        let service = fleet.service
        var requests = try fleet.requests(count: 40_000).makeIterator()
        let alone = try await measure("signed request, scheme 1, one after another", rounds: 3) {
            guard let request = requests.next() else { throw OutOfRequests() }
            _ = try await service.authenticate(request, for: .status)
        }
        // Claims are written in groups, so that what waits for the disk waits together.
        let together = try await concurrently(
            "signed request, scheme 1, 64 at a time", try fleet.requests(count: 100_000)
        ) { _ = try await service.authenticate($0, for: .status) }
        return [alone, together]
    }
}
