import AndroidKeyAttestation
import AttestationTestKit
import AuthContract
import AuthService
import Foundation
import PlayIntegrity
import StrictJSON

/// Stands in for Google: decodes tokens, or does not answer.
///
/// Unless `decodesTokens(of:)` was called, a token is its verdict in base64url. It has no dot, so the service takes
/// it for a standard token.
final class TestGoogle: EvidenceProviders, @unchecked Sendable {
    // Unchecked: the lock guards all variables.
    private let lock = NSLock()
    private var away = false
    private var list: RevocationStatusList?
    private var asked = 0
    private var lists = 0
    private var unsure: Set<String> = []
    private var hangs = false
    private var observer: @Sendable () -> Void = {}
    private var answers: [String: DecodeOutcome] = [:]
    private var packages: [String] = []
    private var authority: GoogleAuthority?

    /// Decodes only the tokens of this authority from now on.
    func decodesTokens(of authority: GoogleAuthority) { lock.withLock { self.authority = authority } }
    /// Gives this answer for a package from now on, whatever the token; nil: the real verdict.
    func answer(_ outcome: DecodeOutcome?, for package: String) { lock.withLock { answers[package] = outcome } }
    /// The requested packages, in order.
    var packagesAskedFor: [String] { lock.withLock { packages } }

    /// Gives no verdict on this token, whatever the answers to other tokens are.
    func neverAnswer(_ token: String) { lock.withLock { _ = unsure.insert(token) } }
    func goAway() { lock.withLock { away = true } }
    func comeBack() { lock.withLock { (away, hangs) = (false, false) } }
    /// Does not return from a request to decode a token until `comeBack`, or until the task is canceled.
    func neverReturn() { lock.withLock { hangs = true } }
    func whenAsked(_ observer: @escaping @Sendable () -> Void) { lock.withLock { self.observer = observer } }
    /// The number of requests to decode a token.
    var questions: Int { lock.withLock { asked } }

    func decode(_ token: String, package: String, for caller: IntegrityCaller) async -> DecodeOutcome {
        let observer = lock.withLock {
            asked += 1
            packages.append(package)
            return self.observer
        }
        observer()
        while lock.withLock({ hangs }), !Task.isCancelled { await Task.yield() }
        let (isAway, given, authority) = lock.withLock {
            (away || unsure.contains(token), answers[package], self.authority)
        }
        guard !isAway else { return .couldNotCheck(PlayIntegrityUnavailable(.providerUnavailable, "away")) }
        if let given { return given }
        if let authority {
            let answer = authority.decodeAnswer(package: package, token: token)
            return DecodeOutcome.googleAnswer(status: answer.status, body: answer.body)
        }
        let payload = String(decoding: Base64.url.decode(token) ?? [], as: UTF8.self)
        guard payload.contains("\"requestPackageName\":\"\(package)\"") else {
            return DecodeOutcome.googleAnswer(
                status: 400, body: Array(#"{"error":{"code":400,"status":"INVALID_ARGUMENT"}}"#.utf8))
        }
        return DecodeOutcome.googleAnswer(status: 200, body: Array(#"{"tokenPayloadExternal":\#(payload)}"#.utf8))
    }

    func revocations(from source: String) async -> RevocationStatusList? {
        lock.withLock {
            lists += 1
            return list
        }
    }

    /// The number of requests for a list of revoked keys.
    var listsAskedFor: Int { lock.withLock { lists } }

    /// Returns this list of revoked keys from now on, whatever source an app names.
    func publish(_ revocations: RevocationStatusList?) { lock.withLock { list = revocations } }

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
