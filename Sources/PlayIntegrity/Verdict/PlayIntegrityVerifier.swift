public import Foundation
internal import StrictJSON

/// What a token was made for: the value that the service gave out.
public enum IntegrityBinding: Sendable {
    /// The nonce of a classic request.
    case nonce(String)
    /// The request hash of a standard request.
    case requestHash(String)
    /// Either, if the app may choose; the token must carry exactly one.
    case either(String)
}

/// A verdict that passed every check that was asked for.
public struct VerifiedIntegrity: Sendable {
    /// What Google says.
    public let verdict: IntegrityVerdict
    /// Checks that nothing was given for.
    public let unchecked: [PlayIntegrityError.Step]
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
        try judge(verdict, packages: packages, binding: binding, at: time)
    }

    /// Judges a stored verdict whose context is partly lost: a parameter that is nil is not compared, and
    /// ``VerifiedIntegrity/unchecked`` says so. Not for registering devices.
    ///
    /// - Parameters:
    ///   - verdict: decoded with response keys or by Google.
    ///   - packages: the packages that are accepted. Those of the verifier are not used.
    ///   - binding: what the token must be made for.
    ///   - time: the time of the check.
    public func audit(
        _ verdict: IntegrityVerdict, packages: Set<String>?, binding: IntegrityBinding?, at time: Date?
    ) throws(PlayIntegrityError) -> VerifiedIntegrity {
        try judge(verdict, packages: packages, binding: binding, at: time)
    }

    private func judge(
        _ verdict: IntegrityVerdict, packages: Set<String>?, binding: IntegrityBinding?, at time: Date?
    ) throws(PlayIntegrityError) -> VerifiedIntegrity {
        let checks = VerdictChecks(verdict: verdict, policy: policy)
        try checks.checkRequestDetails()
        if let packages { try checks.checkPackage(packages) }
        try checks.checkBinding(binding)
        if let time { try checks.checkAge(at: time) }
        try checks.checkTestResponse()
        try checks.checkRecognition(packages)
        try checks.checkCertificateDigests()
        try checks.checkVersionCode()
        try checks.checkDeviceLabels()
        try checks.checkSDKVersion()
        try checks.checkLicensing()
        try checks.checkPlayProtect()
        try checks.checkAppAccessRisk()
        try checks.checkActivityLevel()
        try checks.checkDeviceRecall()

        var unchecked: [PlayIntegrityError.Step] = []
        if packages == nil { unchecked.append(.package) }
        if binding == nil { unchecked.append(.nonce) }
        if time == nil { unchecked.append(.age) }
        return VerifiedIntegrity(verdict: verdict, unchecked: unchecked)
    }
}
