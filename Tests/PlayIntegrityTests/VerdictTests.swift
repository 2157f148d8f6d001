import Foundation
import StrictJSON
import Testing

@testable import PlayIntegrity

@Suite("Judging a verdict")
struct VerdictTests {
    private static let now = Date(timeIntervalSince1970: 1_795_262_400)

    private static func verdict(
        decoder: IntegrityVerdict.Decoder = .google, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> IntegrityVerdict {
        var payload = try #require(
            try JSONValue(
                parsing: """
                    {"requestDetails": {"requestPackageName": "com.example.app", "nonce": "bm9uY2U",
                     "timestampMillis": "1795262400000"},
                     "appIntegrity": {"appRecognitionVerdict": "PLAY_RECOGNIZED", "packageName": "com.example.app",
                      "certificateSha256Digest": ["-2AMDOS0HZpZowxPbSqjXBQeD8dMh5Vlp11F3ZEJbz4"], "versionCode": "42"},
                     "deviceIntegrity": {"deviceRecognitionVerdict": ["MEETS_DEVICE_INTEGRITY"]},
                     "accountDetails": {"appLicensingVerdict": "LICENSED"}}
                    """
            ).object)
        change(&payload)
        return IntegrityVerdict(payload: payload, decodedBy: decoder)
    }

    private static func judge(
        _ verdict: IntegrityVerdict, _ binding: IntegrityBinding = .nonce("bm9uY2U"), at time: Date = now,
        _ change: (inout PlayIntegrityPolicy) -> Void = { _ in }
    ) throws -> PlayIntegrityError.Code? {
        let digest = try #require(CertificateDigest.octets("-2AMDOS0HZpZowxPbSqjXBQeD8dMh5Vlp11F3ZEJbz4"))
        var policy = PlayIntegrityPolicy(certificateDigests: [digest])
        change(&policy)
        let verifier = PlayIntegrityVerifier(policy: policy, packages: ["com.example.app"])
        return refusal { _ = try verifier.verify(verdict, binding: binding, at: time) }
    }

    @Test("a good one passes")
    func good() throws {
        #expect(try Self.judge(Self.verdict()) == nil)
    }

    @Test(
        "nonces are the same whatever their alphabet and padding",
        arguments: [("-_8", "+/8="), ("bm9uY2U=", "bm9uY2U"), ("bm9uY2U", "bm9uY2U==")])
    func normalisedNonces(given: String, expected: String) throws {
        let verdict = try Self.verdict { $0["requestDetails"] = Self.request(nonce: given) }
        #expect(try Self.judge(verdict, .nonce(expected)) == nil)
    }

    @Test(
        "nonces that merely resemble each other are not the same",
        arguments: ["bm9uY2", "Bm9uY2U", "bm9uY2U bm9uY2U", ""])
    func otherNonces(expected: String) throws {
        #expect(try Self.judge(Self.verdict(), .nonce(expected)) == .nonceMismatch)
    }

    private static func request(nonce: String? = nil, hash: String? = nil) -> JSONValue {
        var object: JSONObject = JSONObject([
            ("requestPackageName", "com.example.app"), ("timestampMillis", "1795262400000"),
        ])
        object["nonce"] = nonce.map { .string($0) }
        object["requestHash"] = hash.map { .string($0) }
        return .object(object)
    }

    @Test("exactly one of nonce and request hash is there, of the kind that is due")
    func bindings() throws {
        func judge(_ nonce: String?, _ hash: String?, _ binding: IntegrityBinding) throws -> PlayIntegrityError.Code? {
            let verdict = try Self.verdict { $0["requestDetails"] = Self.request(nonce: nonce, hash: hash) }
            return try Self.judge(verdict, binding)
        }
        #expect(try judge("a", "a", .either("a")) == .bindingAmbiguous)
        #expect(try judge("a", nil, .requestHash("a")) == .requestHashMissing)
        #expect(try judge(nil, "a", .nonce("a")) == .nonceMissing)
        #expect(try judge(nil, "b", .requestHash("a")) == .requestHashMismatch)
        #expect(try judge(nil, nil, .either("a")) == .nonceMissing)
        #expect(try judge("a", nil, .either("a")) == nil)
        #expect(try judge(nil, "a", .either("a")) == nil)
        #expect(try judge(nil, "b", .either("a")) == .requestHashMismatch)
    }

    @Test("a token that our keys opened is a classic one: a request hash does not stand for its nonce")
    func classicNeedsNonce() throws {
        let verdict = try Self.verdict(decoder: .responseKeys) { $0["requestDetails"] = Self.request(hash: "a") }
        #expect(try Self.judge(verdict, .either("a")) == .nonceMissing)
    }

    @Test("age is judged to the millisecond, and the future to a minute")
    func age() throws {
        let verdict = try Self.verdict()
        #expect(try Self.judge(verdict, at: Self.now + 600) == nil)
        #expect(try Self.judge(verdict, at: Self.now + 600.001) == .tokenStale)
        #expect(try Self.judge(verdict, at: Self.now - 60) == nil)
        #expect(try Self.judge(verdict, at: Self.now - 60.001) == .tokenFromFuture)
        func judge(at seconds: Double, _ age: Int64?, _ future: Int64?) throws -> PlayIntegrityError.Code? {
            try Self.judge(verdict, at: Self.now + seconds) {
                $0.maximumAgeSeconds = age
                $0.maximumFutureSeconds = future
            }
        }
        #expect(try judge(at: 0, 0, 0) == nil)
        #expect(try judge(at: 0.001, 0, 0) == .tokenStale)
        #expect(try judge(at: -0.001, 0, 0) == .tokenFromFuture)
        #expect(try judge(at: 86_400, nil, 0) == nil)
        #expect(try judge(at: -86_400, 0, nil) == nil)
    }

    @Test("a token is read up to its largest size")
    func size() throws {
        let largest = String(repeating: "A", count: IntegrityToken.maximumLength)
        #expect(throws: Never.self) { try IntegrityToken(largest) }
        #expect(refusal { _ = try IntegrityToken(largest + "A") } == .tokenMalformed)
        #expect(refusal { _ = try IntegrityToken("") } == .tokenMalformed)
    }

    @Test("Google's verdict is accepted only if no key opens the token")
    func leftToGoogle() {
        func left(_ code: PlayIntegrityError.Code) -> Bool {
            DecodeOutcome.refused(PlayIntegrityError(code, .decryption, "")).mayBeDecodedByGoogle
        }
        #expect(left(.keyUnwrapFailed))
        for code in [.decryptionFailed, .signatureInvalid, .payloadMalformed, .algorithmNotAllowed, .tokenMalformed]
            as [PlayIntegrityError.Code]
        {
            #expect(!left(code))
        }
        #expect(DecodeOutcome.couldNotCheck(.init(.noKeys, "")).mayBeDecodedByGoogle)
        #expect(DecodeOutcome.couldNotCheck(.init(.needsGoogle, "")).mayBeDecodedByGoogle)
    }

    @Test("a timestamp is text or a number; any other type is treated as missing")
    func timestamps() throws {
        func judge(_ time: JSONValue?) throws -> PlayIntegrityError.Code? {
            let verdict = try Self.verdict { payload in
                var request = payload["requestDetails"]?.object ?? JSONObject()
                request["timestampMillis"] = time
                payload["requestDetails"] = .object(request)
            }
            return try Self.judge(verdict)
        }
        #expect(try judge(1_795_262_400_000) == nil)
        #expect(try judge(true) == .timestampMissing)
        #expect(try judge("soon") == .timestampMissing)
        #expect(try judge("9223372036854775807") == .tokenFromFuture)
        #expect(try judge(.integer(Int64.min)) == .tokenStale)
    }

    @Test("what a policy refuses is refused, each with its own reason")
    func policies() throws {
        let verdict = try Self.verdict {
            $0["environmentDetails"] = [
                "playProtectVerdict": "HIGH_RISK", "appAccessRiskVerdict": ["appsDetected": ["UNKNOWN_CAPTURING"]],
            ]
            $0["deviceIntegrity"] = [
                "deviceRecognitionVerdict": ["MEETS_DEVICE_INTEGRITY"], "deviceAttributes": ["sdkVersion": 33],
                "recentDeviceActivity": ["deviceActivityLevel": "LEVEL_3"],
                "deviceRecall": ["values": ["bitFirst": true, "bitSecond": false]],
            ]
        }
        #expect(try Self.judge(verdict) == nil, "risk signals are reported, not refused")
        #expect(try Self.judge(verdict) { $0.refusedPlayProtect = ["HIGH_RISK"] } == .playProtectRefused)
        #expect(try Self.judge(verdict) { $0.refusedAppAccessRisk = ["UNKNOWN_CAPTURING"] } == .appAccessRiskRefused)
        #expect(try Self.judge(verdict) { $0.maximumActivityLevel = 2 } == .activityLevelRefused)
        #expect(try Self.judge(verdict) { $0.maximumActivityLevel = 3 } == nil)
        #expect(try Self.judge(verdict) { $0.refusedDeviceRecall = ["bitFirst"] } == .deviceRecallRefused)
        #expect(try Self.judge(verdict) { $0.refusedDeviceRecall = ["bitSecond"] } == nil)
        #expect(try Self.judge(verdict) { $0.minimumSDKVersion = 34 } == .sdkVersionTooLow)
        #expect(try Self.judge(verdict) { $0.minimumSDKVersion = 33 } == nil)
        #expect(try Self.judge(verdict) { $0.minimumVersionCode = 43 } == .versionTooLow)
        #expect(try Self.judge(verdict) { $0.minimumVersionCode = 42 } == nil)
        #expect(try Self.judge(Self.verdict()) { $0.minimumSDKVersion = 0 } == .sdkVersionTooLow)
        #expect(try Self.judge(verdict) { $0.deviceLabels.insert("MEETS_STRONG_INTEGRITY") } == .deviceIntegrityMissing)
        #expect(try Self.judge(verdict) { $0.certificateDigests = [[1]] } == .certificateDigestMismatch)
        #expect(try Self.judge(verdict) { $0.certificateDigests = [] } == .certificateDigestMismatch)
        #expect(try Self.judge(verdict) { $0.recognitionVerdicts = [] } == .appNotRecognized)
    }

    @Test(
        "a test response is refused, also where the flag is no plain boolean",
        arguments: [true, "true", 1] as [JSONValue])
    func testResponses(flag: JSONValue) throws {
        let verdict = try Self.verdict { $0["testingDetails"] = ["isTestingResponse": flag] }
        #expect(try Self.judge(verdict) == .testResponse)
        #expect(try Self.judge(verdict) { $0.allowsTestResponses = true } == nil)
    }

    @Test("another app is refused, whichever of the two packages says so")
    func packages() throws {
        let requestedByOther = try Self.verdict { $0["requestDetails"] = ["requestPackageName": "com.example.other"] }
        #expect(try Self.judge(requestedByOther) == .packageMismatch)
        let otherApp = try Self.verdict {
            $0["appIntegrity"] = ["appRecognitionVerdict": "PLAY_RECOGNIZED", "packageName": "com.example.other"]
        }
        #expect(try Self.judge(otherApp) == .appPackageMismatch)
        let lookAlike = try Self.verdict { payload in
            payload["requestDetails"] = [
                "requestPackageName": "com.example.\u{212A}ids", "nonce": "bm9uY2U", "timestampMillis": "1795262400000",
            ]
        }
        let kids = PlayIntegrityVerifier(
            policy: PlayIntegrityPolicy(certificateDigests: nil), packages: ["com.example.Kids"])
        #expect(
            refusal { _ = try kids.verify(lookAlike, binding: .nonce("bm9uY2U"), at: Self.now) } == .packageMismatch)
        let unevaluated = try Self.verdict { $0["appIntegrity"] = ["appRecognitionVerdict": "UNEVALUATED"] }
        #expect(
            try Self.judge(unevaluated) {
                $0.recognitionVerdicts = ["UNEVALUATED"]
                $0.certificateDigests = nil
            } == nil)
    }

    @Test(
        "a policy that is not understood is an error that names the member",
        arguments: [
            (#"{"device_label": []}"#, "device_label"),
            (#"{"device_labels": "MEETS_DEVICE_INTEGRITY"}"#, "device_labels"),
            (#"{"maximum_age_seconds": "600"}"#, "maximum_age_seconds"),
            (#"{"maximum_age_seconds": -1}"#, "maximum_age_seconds"),
            (#"{"certificate_digests": ["zz"]}"#, "certificate_digests"),
            (#"{"require_licensed": 1}"#, "require_licensed"),
            (#"{"maximum_activity_level": "LEVEL_5"}"#, "maximum_activity_level"),
            (#"{"minimum_version_code": 1.5}"#, "minimum_version_code"),
        ])
    func oddPolicies(text: String, path: String) throws {
        let fields = try JSONFields(JSONValue(parsing: text))
        do {
            _ = try PlayIntegrityPolicy(certificateDigests: nil).applying(fields)
            Issue.record("accepted")
        } catch {
            #expect(error.path == path)
        }
    }

    @Test("in an audit, null removes a check and an absent member keeps it")
    func nullPolicies() throws {
        let fields = try JSONFields(JSONValue(parsing: #"{"maximum_age_seconds": null, "device_labels": null}"#))
        let policy = try Vectors.policy(fields)
        #expect(policy.maximumAgeSeconds == nil)
        #expect(policy.deviceLabels == [])
        #expect(policy.requiresLicense)
    }

    @Test("an app record weakens no check: null keeps, and members of audits are unknown")
    func appRecords() throws {
        let base = PlayIntegrityPolicy(certificateDigests: [[UInt8](repeating: 1, count: 32)])
        func read(_ text: String) throws -> PlayIntegrityPolicy {
            try base.applying(appRecord: JSONFields(JSONValue(parsing: text)), ignoring: ["keys", "service_account"])
        }
        #expect(try read(#"{"maximum_age_seconds": null, "device_labels": null, "keys": []}"#) == base)
        let strict = try read(#"{"require_licensed": true, "maximum_activity_level": "LEVEL_2"}"#)
        #expect(strict.requiresLicense && strict.maximumActivityLevel == 2)
        #expect(strict.appRecordJSON["maximum_activity_level"] == "LEVEL_2")
        #expect(try base.applying(appRecord: JSONFields(.object(strict.appRecordJSON))) == strict)
        #expect(try base.applying(JSONFields(.object(strict.json))) == strict)
        for text in [
            #"{"maximum_age_seconds": 0}"#, #"{"maximum_age_seconds": 86401}"#, #"{"recognition_verdicts": null}"#,
            #"{"certificate_digests": null}"#, #"{"maximum_future_seconds": 1}"#, #"{"note": ""}"#,
        ] {
            #expect(throws: JSONError.self, "\(text)") { try read(text) }
        }
    }
}
