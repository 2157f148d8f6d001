import AuthContract
import StrictJSON
import Testing

@testable import SynheartAuth

/// The SDK's error codes, row by row, and how the service's codes become the SDK's (specification, *Errors*).
@Suite struct TaxonomyTests {
    static let table: [(String, SynheartAuthError.Code, String)] = [
        ("NETWORK_ERROR", .networkError, "NetworkError"), ("CHALLENGE_EXPIRED", .challengeExpired, "ChallengeExpired"),
        ("ATTESTATION_UNAVAILABLE", .attestationUnavailable, "AttestationUnavailable"),
        ("ATTESTATION_FAILED", .attestationFailed, "ServerError"),
        ("KEY_INVALIDATED", .keyInvalidated, "KeyInvalidated"),
        ("KEYSTORE_ERROR", .keystoreError, "StorageError"),
        ("SECURE_ENCLAVE_ERROR", .secureEnclaveError, "StorageError"),
        ("SIGNING_FAILED", .signingFailed, "CryptoError"), ("DEVICE_REVOKED", .deviceRevoked, "ServerError"),
        ("CLOCK_SKEW", .clockSkew, "ClockSkew"), ("ROTATION_FAILED", .rotationFailed, "ServerError"),
        ("NONCE_REPLAY", .nonceReplay, "ServerError"), ("ALREADY_REGISTERED", .alreadyRegistered, "AlreadyRegistered"),
        ("NOT_REGISTERED", .notRegistered, "NotRegistered"), ("NOT_CONFIGURED", .notConfigured, "NotConfigured"),
        ("REGISTRATION_IN_PROGRESS", .registrationInProgress, "RegistrationInProgress"),
        ("CRYPTO_ERROR", .cryptoError, "CryptoError"), ("STORAGE_ERROR", .storageError, "StorageError"),
        ("INVALID_STATE_TRANSITION", .invalidStateTransition, "InvalidStateTransition"),
        ("ANSWER_TOO_LARGE", .answerTooLarge, "ServerError"),
        ("SOME_FUTURE_CODE", .server("SOME_FUTURE_CODE"), "ServerError"),
    ]

    @Test("each code has its text and its class", arguments: table)
    func row(text: String, code: SynheartAuthError.Code, className: String) {
        #expect(code.text == text)
        #expect(SynheartAuthError.Code(text: text) == code)
        let error = SynheartAuthError.fromCode(text, "why")
        #expect(error.code == code && error.message == "why" && error.className.rawValue == className)
        #expect(SynheartAuthError.fromCode(text).message.isEmpty == false)
    }

    @Test(
        "a malformed code becomes UNKNOWN",
        arguments: ["", "a b", "évil", "x\nINJECTED", String(repeating: "A", count: 65)])
    func notACode(text: String) {
        #expect(SynheartAuthError.Code(text: text) == .server("UNKNOWN"))
    }

    @Test(
        "a code of the service has 1 to 64 of A-Z 0-9 _",
        arguments: ["A", "Z", "0", "9", "_", "A_Z09", String(repeating: "Z", count: 64)].map { ($0, true) }
            + ["@", "[", "/", ":", "^", "`", "a", "z", "A a", String(repeating: "Z", count: 65)].map { ($0, false) })
    func codeCharacters(text: String, isCode: Bool) {
        let code = SynheartAuthError.Code.server(text)
        #expect(code.isFromService && code.text == (isCode ? text : "UNKNOWN"))
    }

    private func verdict(_ code: String, _ status: Int) -> SynheartAuthError {
        let body = ErrorBody(code: code, message: "m", requestID: "r", serverTimestamp: UnixTime(1_709_312_345))
        return ServiceVerdict.error(of: TransportResponse(status: status, body: body.bytes))
    }

    @Test("each refusal of the service is its error")
    func refusals() {
        #expect(verdict("CHALLENGE_EXPIRED", 400).code == .challengeExpired)
        #expect(verdict("INVALID_ATTESTATION", 403).code == .attestationFailed)
        #expect(verdict("DEVICE_REVOKED", 403).recovery == .reset)
        #expect(verdict("CLOCK_SKEW", 401).serverTime == UnixTime(1_709_312_345))
        #expect(verdict("NONCE_REPLAY", 409).code == .nonceReplay)
        #expect(verdict("ROTATION_FAILED", 409).code == .rotationFailed)
        #expect(verdict("KEY_EXPIRED", 403).recovery == .rotate)
        #expect(verdict("UNKNOWN_APP", 404).recovery == SynheartAuthError.Recovery.none)
        #expect(verdict("UNKNOWN_APP", 404).isRetryable == false)
    }

    @Test("the server time of a 400 comes from its body, and that of a 2xx only from the header")
    func serverTime() {
        let body = ErrorBody(
            code: "INVALID_CHALLENGE", message: "", requestID: "", serverTimestamp: UnixTime(1_709_312_345))
        #expect(ServiceVerdict.serverTime(TransportResponse(status: 400, body: body.bytes)) == UnixTime(1_709_312_345))
        #expect(ServiceVerdict.serverTime(TransportResponse(status: 399, body: body.bytes)) == nil)
        #expect(ServiceVerdict.serverTime(TransportResponse(status: 200, body: body.bytes)) == nil)
    }

    @Test(
        "each failure of a key store is its error",
        arguments: [
            (KeyStoreError.Code.notFound, KeyProtection.secureEnclave, "SECURE_ENCLAVE_ERROR", "none"),
            (.invalidated, .hostKeystore, "KEY_INVALIDATED", "register"),
            (.unavailable, .secureEnclave, "SECURE_ENCLAVE_ERROR", "retry"),
            (.unavailable, .hostKeystore, "KEYSTORE_ERROR", "retry"),
            (.unsupported, .secureEnclave, "ATTESTATION_UNAVAILABLE", "none"),
            (.unsupported, .hostKeystore, "KEYSTORE_ERROR", "none"),
            (.failed, .secureEnclave, "SECURE_ENCLAVE_ERROR", "none"), (.failed, .software, "KEYSTORE_ERROR", "none"),
        ])
    func keyStore(failure: KeyStoreError.Code, protection: KeyProtection, code: String, recovery: String) {
        let error = SynheartAuthError.keyStore(KeyStoreError(failure), protection)
        #expect(error.code.text == code && error.recovery.rawValue == recovery)
    }

    @Test("the service's NOT_REGISTERED is not the local one")
    func notTheLocalOne() {
        for code in ["NOT_REGISTERED", "INVALID_SIGNATURE"] {
            let error = verdict(code, 401)
            #expect(error.code == .server(code) && error.code.text == code)
            #expect(error.recovery == .reset && error.className == .serverError)
            #expect(error != SynheartAuthError(.notRegistered, ""))
        }
    }

    @Test(
        "5xx, redirects and foreign bodies are NETWORK_ERROR",
        arguments: [301, 302, 500, 502, 503, 599])
    func network(status: Int) {
        #expect(verdict("SERVICE_UNAVAILABLE", status).code == .networkError)
        #expect(
            ServiceVerdict.error(of: TransportResponse(status: 403, body: Array("<html>".utf8))).code == .networkError)
    }

    @Test(
        "Retry-After is limited to five minutes", arguments: [("7", 7), ("0", 0), ("86400", 300)])
    func retryAfter(text: String, seconds: Int) {
        #expect(ServiceVerdict.retryAfter(HeaderFields([("retry-after", text)])) == .seconds(seconds))
        #expect(ServiceVerdict.retryAfter(HeaderFields([("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")])) == nil)
        #expect(ServiceVerdict.retryAfter(HeaderFields([("Retry-After", "-1")])) == nil)
    }
}

/// The numbers of the retry policy.
@Suite struct RetryPolicyTests {
    private struct Fixed: RandomSource {
        let byte: UInt8
        func bytes(_ count: Int) -> [UInt8] { Array(repeating: byte, count: count) }
    }

    @Test("a registration backs off from 1 s to 30 s in 5 attempts")
    func registration() {
        let policy = RetryPolicy.registration
        let none = (0..<6).map { policy.delay(after: $0, random: Fixed(byte: 0)) }
        #expect(none == [.seconds(1), .seconds(2), .seconds(4), .seconds(8), nil, nil])
        for attempt in 0..<4 {
            let most = policy.delay(after: attempt, random: Fixed(byte: 0xFF))
            let least = policy.delay(after: attempt, random: Fixed(byte: 0))
            #expect((most ?? .zero) - (least ?? .zero) < .milliseconds(500))
            #expect((most ?? .zero) - (least ?? .zero) > .milliseconds(499))
        }
        let long = RetryPolicy(base: .seconds(1), jitter: .milliseconds(500), maximum: .seconds(30), attempts: 100)
        #expect(long.delay(after: 90, random: Fixed(byte: 0xFF)) == .seconds(30))
    }

    @Test("the jitter is the fraction that two random bytes say, and none without them")
    func jitter() {
        let policy = RetryPolicy.registration
        for byte in [UInt8(0x00), 0x01, 0x80, 0xFF] {
            let fraction = Double(UInt16(byte) << 8 | UInt16(byte)) / 65_536
            #expect(policy.delay(after: 0, random: Fixed(byte: byte)) == .seconds(1) + .milliseconds(500) * fraction)
        }
        #expect(policy.delay(after: 0, random: nil) == .seconds(1))
        #expect(policy.delay(after: 4, random: nil, retryAfter: .seconds(1)) == nil)
        #expect(policy.delay(after: 0, random: nil, retryAfter: .seconds(-1)) == .zero)
        #expect(policy.delay(after: 0, random: nil, retryAfter: .seconds(301)) == .seconds(300))
    }

    @Test("a rotation backs off from 60 s to an hour in 3 attempts")
    func rotation() {
        #expect(
            (0..<3).map { RetryPolicy.rotation.delay(after: $0, random: nil) } == [.seconds(60), .seconds(120), nil])
        #expect(RetryPolicy.rotation.maximum == .seconds(3600))
    }

    @Test("Retry-After replaces the computed delay")
    func retryAfter() async throws {
        #expect(RetryPolicy.registration.delay(after: 0, random: nil, retryAfter: .seconds(17)) == .seconds(17))
        let phone = Phone()
        await phone.service.refuse(.challenge, .serviceUnavailable, retryAfter: 17)
        try await phone.launch().registerDevice(appID: Phone.app)
        #expect(phone.sleeper.retries == [.seconds(17)])
    }

    @Test("an unavailable record is read 5 times")
    func storage() async throws {
        let phone = Phone()
        phone.storage.beUnavailable(times: 5)
        let error = await expectError(.storageError) { try await phone.launch().isRegistered(appID: Phone.app) }
        #expect(error?.isRetryable == true)
        #expect(phone.sleeper.retries == [100, 200, 400, 800].map { .milliseconds($0) })
    }

    @Test("a locked device never makes a new identity")
    func locked() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.storage.beUnavailable(times: 5)
        await expectError(.storageError) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("every error has a description, a reason and, if there is a recovery, a suggestion")
    func localized() {
        for row in RetryTable.own + RetryTable.service {
            let error = SynheartAuthError(row.code, "because")
            #expect(error.errorDescription == ErrorTable.row(of: row.code).message)
            #expect(error.failureReason == "\(row.code.text): because")
            #expect((error.recoverySuggestion == nil) == (row.recovery == .none))
        }
    }
}
