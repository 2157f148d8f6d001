import AndroidKeyAttestation
import AuthContract
import AuthService
import Foundation
import PlayIntegrity
import StrictJSON

/// A Google that decodes tokens, or is away. A token is its own verdict, base64url without a dot, as standard tokens are.
final class TestGoogle: EvidenceProviders, @unchecked Sendable {
    // Unchecked: the lock guards all three.
    private let lock = NSLock()
    private var away = false
    private var revoked: RevocationStatusList?
    private var asked = 0

    func goAway() { lock.withLock { away = true } }
    func comeBack() { lock.withLock { away = false } }
    /// How often it was asked.
    var questions: Int { lock.withLock { asked } }

    func decode(_ token: String, package: String, serviceAccount: Secret) async -> DecodeOutcome {
        let isAway = lock.withLock {
            asked += 1
            return away
        }
        guard !isAway else { return .couldNotCheck(PlayIntegrityUnavailable(.providerUnavailable, "away")) }
        let payload = String(decoding: Base64.url.decode(token) ?? [], as: UTF8.self)
        return DecodeOutcome.googleAnswer(status: 200, body: Array(#"{"tokenPayloadExternal":\#(payload)}"#.utf8))
    }

    func revocations(from source: String) async -> RevocationStatusList? { lock.withLock { revoked } }

    /// Publishes a list of revoked keys; there is none before.
    func publish(_ list: JSONValue) throws {
        let list = try RevocationStatusList(list)
        lock.withLock { revoked = list }
    }

    /// A standard token over `nonce`, made at `time`, for the app of `World.android`.
    static func token(
        _ nonce: BindingNonce, at time: UnixTime, package: String = "com.example.app",
        labels: [String] = ["MEETS_DEVICE_INTEGRITY"]
    ) -> String {
        let verdict: JSONValue = [
            "requestDetails": [
                "requestPackageName": .string(package), "requestHash": .string(nonce.playIntegrityText),
                "timestampMillis": .string("\(time.seconds * 1000)"),
            ],
            "appIntegrity": [
                "appRecognitionVerdict": "PLAY_RECOGNIZED", "packageName": .string(package),
                "certificateSha256Digest": [.string(World.certificateDigest)], "versionCode": "7",
            ],
            "deviceIntegrity": ["deviceRecognitionVerdict": .array(labels.map { .string($0) })],
            "accountDetails": ["appLicensingVerdict": "LICENSED"],
        ]
        return Base64.url.encode(verdict.bytes)
    }
}
