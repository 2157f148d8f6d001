internal import Bytes
public import Foundation
internal import StrictJSON

/// The value that binds a token to one request: the service issued it or can compute it.
public enum IntegrityBinding: Sendable {
    /// The nonce of a classic request.
    case nonce(String)
    /// The request hash of a standard request.
    case requestHash(String)
    /// The nonce or the request hash, if the app may choose. The token must have exactly one of them. A request hash is accepted
    /// only if Google decoded the token.
    case either(String)
}

/// A verdict that passed every check that the policy requires.
public struct VerifiedIntegrity: Sendable {
    /// Google's verdict.
    public let verdict: IntegrityVerdict
}

/// Judges Google's verdicts by a policy. The checks and their order are the same whether response keys or Google decoded the
/// token.
public struct PlayIntegrityVerifier: Sendable {
    /// Packages that are accepted.
    public var packages: Set<String>
    /// The requirements for app, device and account.
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
    ///   - binding: the nonce or request hash that the token must have.
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

    /// Runs the steps up to the first that fails, as far as `expected` has values for them, and returns their outcomes.
    ///
    /// For inspection and tests of policies: a token that passes an audit is not verified.
    ///
    /// - Parameters:
    ///   - token: as the app sent it.
    ///   - keys: the key pairs to try.
    ///   - decodedVerdict: the verdict of the token, if it was decoded elsewhere. It is judged if the keys do not
    ///     decrypt the token. The audit cannot check that Google signed it.
    ///   - expected: the values to compare with. A member that is nil is not compared.
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

    /// Runs the steps for a decoded verdict: those from ``PlayIntegrityError/Step/payload`` on.
    public func audit(_ verdict: IntegrityVerdict, against expected: PlayIntegrityExpectations) -> PlayIntegrityAudit {
        PlayIntegrityAudit(verdict, unchecked: unchecked(expected)) { log throws(PlayIntegrityError) in
            try prove(verdict, expected, &log)
        }
    }

    /// Runs the steps in the order of ``PlayIntegrityError/Step`` up to the first that fails, and logs each.
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
