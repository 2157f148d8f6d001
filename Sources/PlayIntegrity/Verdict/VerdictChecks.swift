internal import Bytes
internal import Foundation

/// The checks of a verdict, in the order of ``PlayIntegrityError/Step``.
struct VerdictChecks {
    let verdict: IntegrityVerdict
    let policy: PlayIntegrityPolicy

    func checkRequestDetails() throws(PlayIntegrityError) {
        guard verdict.hasRequestDetails else {
            throw PlayIntegrityError(.requestDetailsMissing, .payload, "no requestDetails")
        }
    }

    func checkPackage(_ packages: Set<String>) throws(PlayIntegrityError) {
        guard Self.isAmong(packages, verdict.requestPackageName) else {
            throw PlayIntegrityError(
                .packageMismatch, .package, "requested by \(verdict.requestPackageName ?? "no package")")
        }
    }

    /// Compares code points, because for String's own equality a Kelvin sign equals a K.
    private static func isAmong(_ packages: Set<String>, _ package: String?) -> Bool {
        guard let package else { return false }
        return packages.contains { $0.utf8.elementsEqual(package.utf8) }
    }

    /// Requires exactly one of nonce and request hash, of the required kind and with the issued value. Without a binding, any value
    /// is accepted.
    func checkBinding(_ binding: IntegrityBinding?) throws(PlayIntegrityError) {
        let nonce = verdict.nonce.flatMap { $0.isEmpty ? nil : $0 }
        let requestHash = verdict.requestHash.flatMap { $0.isEmpty ? nil : $0 }
        guard nonce == nil || requestHash == nil else {
            throw PlayIntegrityError(.bindingAmbiguous, .nonce, "nonce and request hash")
        }
        switch binding {
        case .nonce(let expected): try compareNonce(nonce, expected)
        case .requestHash(let expected): try compareRequestHash(requestHash, expected)
        case .either(let expected):
            if let requestHash, verdict.decoder == .google {
                try compareRequestHash(requestHash, expected)
            } else {
                try compareNonce(nonce, expected)
            }
        case nil:
            // A token that the response keys decrypted is classic, so it must have a nonce.
            guard nonce != nil || (requestHash != nil && verdict.decoder == .google) else {
                throw PlayIntegrityError(.nonceMissing, .nonce, "no nonce")
            }
        }
    }

    private func compareNonce(_ nonce: String?, _ expected: String) throws(PlayIntegrityError) {
        guard let nonce else { throw PlayIntegrityError(.nonceMissing, .nonce, "no nonce") }
        guard isSameText(nonce, expected) else {
            throw PlayIntegrityError(.nonceMismatch, .nonce, "made for another nonce")
        }
    }

    private func compareRequestHash(_ requestHash: String?, _ expected: String) throws(PlayIntegrityError) {
        guard let requestHash else { throw PlayIntegrityError(.requestHashMissing, .nonce, "no request hash") }
        guard isSameText(requestHash, expected) else {
            throw PlayIntegrityError(.requestHashMismatch, .nonce, "made for another request")
        }
    }

    /// Compares normalized base64, because the padding of the nonce that Google returns may differ from what the app sent.
    private func isSameText(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(Base64.normalized(left).utf8), Array(Base64.normalized(right).utf8))
        return !left.isEmpty && constantTimeEquals(left, right)
    }

    func checkAge(at time: Date) throws(PlayIntegrityError) {
        guard let timestamp = verdict.timestampMillis else {
            throw PlayIntegrityError(.timestampMissing, .age, "no timestampMillis that can be read")
        }
        // Floating point cannot overflow, whatever the token contains. It is exact to the millisecond for any real
        // time.
        let age = (time.timeIntervalSince1970 * 1000).rounded() - Double(timestamp)
        if let maximum = policy.maximumAgeSeconds, age > Double(maximum) * 1000 {
            throw PlayIntegrityError(.tokenStale, .age, "made \(age) ms ago")
        }
        if let maximum = policy.maximumFutureSeconds, -age > Double(maximum) * 1000 {
            throw PlayIntegrityError(.tokenFromFuture, .age, "made \(-age) ms from now")
        }
    }

    func checkTestResponse() throws(PlayIntegrityError) {
        guard policy.allowsTestResponses || !verdict.isTestingResponse else {
            throw PlayIntegrityError(.testResponse, .testResponse, "a response that was configured for tests")
        }
    }

    func checkRecognition(_ packages: Set<String>?) throws(PlayIntegrityError) {
        if let accepted = policy.recognitionVerdicts {
            guard let recognition = verdict.appRecognitionVerdict, accepted.contains(recognition) else {
                throw PlayIntegrityError(
                    .appNotRecognized, .recognition, verdict.appRecognitionVerdict ?? "no recognition verdict")
            }
        }
        // Google omits the package only if it did not evaluate the app. Then no package is compared.
        guard let packages, verdict.appRecognitionVerdict != "UNEVALUATED" || verdict.appPackageName != nil else {
            return
        }
        guard Self.isAmong(packages, verdict.appPackageName) else {
            throw PlayIntegrityError(
                .appPackageMismatch, .recognition, "the app is \(verdict.appPackageName ?? "nameless")")
        }
    }

    func checkCertificateDigests() throws(PlayIntegrityError) {
        guard let accepted = policy.certificateDigests else { return }
        guard !accepted.isDisjoint(with: verdict.certificateDigests.compactMap(CertificateDigest.octets)) else {
            throw PlayIntegrityError(
                .certificateDigestMismatch, .certificateDigests, "signed with \(verdict.certificateDigests)")
        }
    }

    func checkVersionCode() throws(PlayIntegrityError) {
        guard let minimum = policy.minimumVersionCode else { return }
        guard let version = verdict.versionCode, version >= minimum else {
            throw PlayIntegrityError(
                .versionTooLow, .versionCode, "version \(verdict.versionCode.map(String.init) ?? "unknown")")
        }
    }

    func checkDeviceLabels() throws(PlayIntegrityError) {
        let missing = policy.deviceLabels.subtracting(verdict.deviceLabels)
        guard missing.isEmpty else {
            throw PlayIntegrityError(.deviceIntegrityMissing, .deviceLabels, "lacks \(missing.sorted())")
        }
    }

    func checkSDKVersion() throws(PlayIntegrityError) {
        guard let minimum = policy.minimumSDKVersion else { return }
        guard let version = verdict.sdkVersion, version >= minimum else {
            throw PlayIntegrityError(
                .sdkVersionTooLow, .sdkVersion, "SDK \(verdict.sdkVersion.map(String.init) ?? "unknown")")
        }
    }

    func checkLicensing() throws(PlayIntegrityError) {
        guard !policy.requiresLicense || verdict.appLicensingVerdict == "LICENSED" else {
            throw PlayIntegrityError(.notLicensed, .licensing, verdict.appLicensingVerdict ?? "no licensing verdict")
        }
    }

    func checkPlayProtect() throws(PlayIntegrityError) {
        if let found = verdict.playProtectVerdict, policy.refusedPlayProtect.contains(found) {
            throw PlayIntegrityError(.playProtectRefused, .playProtect, found)
        }
    }

    func checkAppAccessRisk() throws(PlayIntegrityError) {
        let found = policy.refusedAppAccessRisk.intersection(verdict.appAccessRisks)
        guard found.isEmpty else {
            throw PlayIntegrityError(.appAccessRiskRefused, .appAccessRisk, "\(found.sorted())")
        }
    }

    func checkActivityLevel() throws(PlayIntegrityError) {
        guard let maximum = policy.maximumActivityLevel,
            let level = verdict.deviceActivityLevel.flatMap(ActivityLevel.number)
        else { return }
        guard level <= maximum else {
            throw PlayIntegrityError(.activityLevelRefused, .activityLevel, "level \(level)")
        }
    }

    func checkDeviceRecall() throws(PlayIntegrityError) {
        let found = policy.refusedDeviceRecall.intersection(verdict.recallBitsSet)
        guard found.isEmpty else {
            throw PlayIntegrityError(.deviceRecallRefused, .deviceRecall, "\(found.sorted())")
        }
    }
}
