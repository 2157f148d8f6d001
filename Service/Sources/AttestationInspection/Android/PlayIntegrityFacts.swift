internal import PlayIntegrity
internal import StrictJSON

/// The contents of a Play Integrity token and its verdict, as a JSON object.
enum PlayIntegrityFacts {
    static func facts(_ audit: PlayIntegrityAudit) -> JSONObject {
        var facts = JSONObject()
        if let token = audit.token { facts["token_form"] = .string(form(token)) }
        if let verdict = audit.verdict { add(verdict, to: &facts) }
        return facts
    }

    static func form(_ token: IntegrityToken) -> String {
        switch token {
        case .classic: "classic"
        case .opaque: "opaque"
        }
    }

    static func add(_ verdict: IntegrityVerdict, to facts: inout JSONObject) {
        func strings(_ values: [String]) -> JSONValue { .array(values.map { .string($0) }) }
        facts["decoded_by"] = .string(verdict.decoder.rawValue)
        facts["package"] = verdict.requestPackageName.map { .string($0) }
        facts["nonce"] = verdict.nonce.map { .string($0) }
        facts["request_hash"] = verdict.requestHash.map { .string($0) }
        facts["timestamp_millis"] = verdict.timestampMillis.map { .integer($0) }
        facts["app_recognition_verdict"] = verdict.appRecognitionVerdict.map { .string($0) }
        facts["app_package"] = verdict.appPackageName.map { .string($0) }
        facts["certificate_digests"] = strings(verdict.certificateDigests)
        facts["version_code"] = verdict.versionCode.map { .integer($0) }
        facts["device_labels"] = strings(verdict.deviceLabels)
        facts["sdk_version"] = verdict.sdkVersion.map { .integer($0) }
        facts["device_activity_level"] = verdict.deviceActivityLevel.map { .string($0) }
        facts["recall_bits_set"] = strings(verdict.recallBitsSet)
        facts["app_licensing_verdict"] = verdict.appLicensingVerdict.map { .string($0) }
        facts["play_protect_verdict"] = verdict.playProtectVerdict.map { .string($0) }
        facts["app_access_risks"] = strings(verdict.appAccessRisks)
        facts["test_response"] = .bool(verdict.isTestingResponse)
        facts["payload"] = .object(verdict.payload)
    }
}
