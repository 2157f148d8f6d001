internal import Bytes
public import Foundation
internal import StrictJSON

/// What a token was made for: the value that the service gave out.
public enum IntegrityBinding: Sendable {
    /// The nonce of a classic request.
    case nonce(String)
    /// The request hash of a standard request.
    case requestHash(String)
    /// Either, where the app may choose; the token must carry exactly one.
    case either(String)
}

/// A verdict that passed every check that was asked for.
public struct VerifiedIntegrity: Sendable {
    /// What Google says.
    public let verdict: IntegrityVerdict
}

/// Judges Google's verdicts by a policy: the same checks in the same order, whether the token was decoded here or at Google.
public struct PlayIntegrityVerifier: Sendable {
    /// Packages that are accepted.
    public var packages: Set<String>
    /// What is asked of app, device and account.
    public var policy: PlayIntegrityPolicy

    /// A verifier for an app.
    public init(policy: PlayIntegrityPolicy, packages: Set<String>) {
        self.policy = policy
        self.packages = packages
    }

    /// Judges a verdict for a device that wants to register.
    ///
    /// - Parameters:
    ///   - verdict: decoded with response keys or by Google.
    ///   - binding: what the token must be made for.
    ///   - time: the time of the check.
    /// - Throws: the first check that failed, in the order of ``PlayIntegrityError/Step``.
    public func verify(
        _ verdict: IntegrityVerdict, binding: IntegrityBinding, at time: Date
    ) throws(PlayIntegrityError) -> VerifiedIntegrity {
        var expected = PlayIntegrityExpectations()
        expected.packages = packages
        expected.binding = binding
        expected.date = time
        var log = StepLog<PlayIntegrityError>()
        try prove(verdict, expected, &log)
        return VerifiedIntegrity(verdict: verdict)
    }

    /// Makes every step that what is known allows, and says how each went. For inspection and tests of policies: a token
    /// that passes an audit is not verified.
    ///
    /// - Parameters:
    ///   - token: as the app sent it.
    ///   - keys: pairs that may open it.
    ///   - decodedVerdict: what the token said when it was decoded elsewhere. It is judged if the keys do not open the
    ///     token. The audit cannot check that Google signed it.
    ///   - expected: what is known. What is nil is not compared.
    public func audit(
        _ token: String, keys: [ResponseKeys], decodedVerdict: IntegrityVerdict? = nil,
        against expected: PlayIntegrityExpectations
    ) -> PlayIntegrityAudit {
        PlayIntegrityAudit(
            token: { () throws(PlayIntegrityError) in try IntegrityToken(token) }, keys: keys,
            decodedVerdict: decodedVerdict, unchecked: unchecked(expected)
        ) { verdict, log throws(PlayIntegrityError) in
            try prove(verdict, expected, &log)
        }
    }

    /// Makes the steps about a verdict that has been decoded: those from ``PlayIntegrityError/Step/payload`` on.
    public func audit(_ verdict: IntegrityVerdict, against expected: PlayIntegrityExpectations) -> PlayIntegrityAudit {
        PlayIntegrityAudit(verdict, unchecked: unchecked(expected)) { log throws(PlayIntegrityError) in
            try prove(verdict, expected, &log)
        }
    }

    /// The steps, in the order of ``PlayIntegrityError/Step``.
    private func prove(
        _ verdict: IntegrityVerdict, _ expected: PlayIntegrityExpectations, _ log: inout StepLog<PlayIntegrityError>
    ) throws(PlayIntegrityError) {
        let checks = VerdictChecks(verdict: verdict, policy: policy)
        try log.check(.payload, try checks.checkRequestDetails())
        if let packages = expected.packages {
            try log.check(.package, try checks.checkPackage(packages))
        } else {
            log.skip(.package, "no package is given")
        }
        if expected.binding == nil { log.skip(.nonce, "no nonce is given: the verdict must have one") }
        try log.check(.nonce, try checks.checkBinding(expected.binding))
        if let date = expected.date {
            try log.check(.age, try checks.checkAge(at: date))
        } else {
            log.skip(.age, "no time is given")
        }
        try log.check(.testResponse, try checks.checkTestResponse())
        try log.check(.recognition, try checks.checkRecognition(expected.packages))
        try log.check(.certificateDigests, try checks.checkCertificateDigests())
        try log.check(.versionCode, try checks.checkVersionCode())
        try log.check(.deviceLabels, try checks.checkDeviceLabels())
        try log.check(.sdkVersion, try checks.checkSDKVersion())
        try log.check(.licensing, try checks.checkLicensing())
        try log.check(.playProtect, try checks.checkPlayProtect())
        try log.check(.appAccessRisk, try checks.checkAppAccessRisk())
        try log.check(.activityLevel, try checks.checkActivityLevel())
        try log.check(.deviceRecall, try checks.checkDeviceRecall())
    }

    private func unchecked(_ expected: PlayIntegrityExpectations) -> [PlayIntegrityError.Step] {
        let missing: [(PlayIntegrityError.Step, Bool)] = [
            (.package, expected.packages == nil), (.nonce, expected.binding == nil), (.age, expected.date == nil),
        ]
        return missing.filter(\.1).map(\.0)
    }
}
