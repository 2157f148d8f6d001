internal import AndroidKeyAttestation
internal import AppAttest
package import AuthContract
internal import PlayIntegrity
package import StrictJSON
package import Verification

/// The decisions that an app record would make about devices and requests that another record judged.
///
/// A device's row has its proven assurance, not its attestation. So the findings cover only the row: the policy may refuse a
/// registration for other reasons too. Recorded refusals are judged again with ``AppRecord/proofPolicy(of:)``.
package struct WhatIf: Sendable {
    /// The event about which the record decides.
    package enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The device's next request to another service.
        case request
        /// A registration with the device's proof.
        case registration
    }

    /// The decision.
    package enum Outcome: String, Sendable, Hashable, CaseIterable {
        case refused
        /// The device would wait for an operator.
        case pending
        /// Under mode `observe`, the service would report the request or registration, and accept it.
        case observed
    }

    /// What decides: a member of the record, or the state of the device under the record.
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        case disabled
        case platform
        case assurance
        case pending
        case underObservation = "admitted_under_observation"
        case keyAge = "key_age"
        case scheme = "signature.minimum_scheme"
        case authorities = "signature.authorities"
        case assertion = "ios.assertions_required"
        case developmentMode = "development_integrity_allowed"
        case trustAnchors = "trust_anchors"
        case iosAppID = "ios.app_ids"
        case environment = "ios.environments"
        case proof = "android.proof"
        case deviceLabels = "android.play_integrity.device_labels"
        case securityLevel = "android.key_attestation.minimum_security_level"
        case approval = "registration.approval"
    }

    /// One decision other than an admission.
    package struct Finding: Sendable, Hashable {
        package let stage: Stage
        package let outcome: Outcome
        package let reason: Reason
        /// The code of the answer; nil with the reason `approval`, because such a registration is not refused.
        package let code: ErrorCode?
    }

    let record: AppRecord
    private let now: UnixTime

    /// Decisions under this record at this time.
    package init(_ record: AppRecord, at now: UnixTime) {
        self.record = record
        self.now = now
    }

    /// Whether there can be findings about a device: it is pending or registered.
    package static func judges(_ device: DeviceRecord) -> Bool {
        device.status == .registered || device.status == .pending
    }

    /// The findings about a pending or registered device: for each stage at most one, the first that decides. Other devices are
    /// not judged.
    package func findings(about device: DeviceRecord) -> [Finding] {
        guard Self.judges(device) else { return [] }
        return [request(of: device), registration(of: device)].compactMap { $0 }
    }

    // MARK: Requests

    private func request(of device: DeviceRecord) -> Finding? {
        guard record.enabled else { return refused(.request, .disabled, .unknownApp) }
        let states = AccessTable.states(of: device, signedBy: .current, mode: record.mode, keys: record.keys, now: now)
        if case .refused(let code) = AccessTable.access(states, .otherService) {
            switch code {
            case .devicePending where record.mode == .enforce:
                let reason: Reason = device.status == .pending ? .pending : .underObservation
                return Finding(stage: .request, outcome: .pending, reason: reason, code: code)
            case .devicePending: return refused(.request, .pending, code)
            default: return refused(.request, .keyAge, code)
            }
        }
        if record.buildChannel == .production, [.test, .development].contains(device.assurance.app) {
            return refused(.request, .assurance, .deviceRevoked)
        }
        // Without authorities, other services accept only scheme 1, which is below the device's scheme floor.
        if record.signature.authorities.isEmpty, device.highestScheme == .two {
            return refused(.request, .authorities, .unsupportedSigVersion)
        }
        // The device may be able to sign under this scheme although it never did. The finding says only that it never did.
        guard device.highestScheme >= record.signature.minimumScheme else {
            return refused(.request, .scheme, .unsupportedSigVersion)
        }
        guard device.platform == .ios, device.appAttest == nil, record.ios?.demandsAssertions == true else {
            return nil
        }
        return refused(.request, .assertion, .assertionRequired)
    }

    func refused(_ stage: Stage, _ reason: Reason, _ code: ErrorCode) -> Finding {
        // In mode `observe`, a request to another service passes although it would be refused, unless the app is disabled.
        // A registration with an invalid proof does not pass.
        let isObserved = stage == .request && record.mode == .observe && reason != .disabled
        return Finding(stage: stage, outcome: isObserved ? .observed : .refused, reason: reason, code: code)
    }

    // MARK: Registrations

    private func registration(of device: DeviceRecord) -> Finding? {
        guard record.enabled else { return refused(.registration, .disabled, .unknownApp) }
        if device.assurance.app == .development {
            guard record.developmentIntegrityAllowed, record.buildChannel != .production else {
                return refused(.registration, .developmentMode, .devModeNotAllowed)
            }
        } else if let reason = unmet(by: device) {
            return refused(.registration, reason, .invalidAttestation)
        }
        guard record.registration.approval == .manual else { return nil }
        return Finding(
            stage: .registration, outcome: record.mode == .observe ? .observed : .pending, reason: .approval, code: nil)
    }

    /// The first requirement for a proof that the device does not meet.
    private func unmet(by device: DeviceRecord) -> Reason? {
        switch device.platform {
        case .ios: record.ios.map { unmet($0, by: device) } ?? .platform
        case .android: record.android.map { unmet($0, by: device) } ?? .platform
        }
    }

    private func unmet(_ app: IOSApp, by device: DeviceRecord) -> Reason? {
        if device.assurance.app == .test, app.trustAnchors.isEmpty { return .trustAnchors }
        // A device whose proof never verified has no App Attest key.
        guard let proven = device.appAttest else { return nil }
        guard app.appIDs.contains(proven.appID) else { return .iosAppID }
        return app.policy.environments.contains { $0.rawValue == proven.environment } ? nil : .environment
    }

    private func unmet(_ app: AndroidApp, by device: DeviceRecord) -> Reason? {
        let assurance = device.assurance
        // An unverified proof says nothing about the device.
        if assurance.isUnproven { return nil }
        let isIntegral = assurance.app == .playIntegrity
        let isAttested = assurance.key == .tee || assurance.key == .strongbox
        switch assurance.app {
        case .test:
            // The device was proven by a key attestation of a test root, or by a test response of Play Integrity.
            if app.trustAnchors.isEmpty, !app.playIntegrity.policy.allowsTestResponses { return .trustAnchors }
        case .none:
            if app.proof == .playIntegrity || app.proof == .both { return .proof }
        case .playIntegrity, .appAttest, .appAttestDevelopment, .development: break
        }
        if isIntegral, !Set(assurance.labels).isSuperset(of: app.playIntegrity.policy.deviceLabels) {
            return .deviceLabels
        }
        if isAttested, app.keyAttestation.policy.minimumSecurityLevel == .strongBox, assurance.key != .strongbox {
            return .securityLevel
        }
        return nil
    }
}

extension IOSApp {
    /// Whether requests on some paths need an assertion.
    fileprivate var demandsAssertions: Bool { !assertionsRequiredOn.isEmpty || assertionsRequiredExcept != nil }
}

extension AppRecord {
    /// The app's policy for one kind of proof, in the form in which a recorded refusal has it; nil: the app record has no section for the
    /// proof's platform.
    package func proofPolicy(of kind: PolicyKind) -> JSONValue? {
        let policy: JSONObject? =
            switch kind {
            case .ios: ios?.policy.json
            case .keyAttestation: android?.keyAttestationPolicy.json
            case .playIntegrity: android?.integrityPolicy.json
            }
        return policy.map { kind.file($0) }
    }
}
