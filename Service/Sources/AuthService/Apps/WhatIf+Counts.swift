internal import AuthContract

/// The decisions that an app record would make about past requests for which only counts of verdicts are kept.
///
/// A count has kind, platform, scheme, code and app version, but neither the device nor its proof. So these findings cover only
/// the record's members that need nothing else to decide.
extension WhatIf {
    /// The finding about a past request to another service, or about a past registration. Nil if the record would let it pass,
    /// or if it did not pass then.
    package func finding(about counted: CountedVerdict) -> Finding? {
        guard Self.hasPassed(counted) else { return nil }
        switch counted.kind {
        case .verification: return request(of: counted)
        case .registration: return registration(of: counted)
        case .device: return nil
        }
    }

    /// Whether the verdict is about a request to another service that passed (also under observation), or about an accepted
    /// registration.
    package static func hasPassed(_ counted: CountedVerdict) -> Bool {
        switch counted.kind {
        case .verification: counted.code == "verified" || observed(counted) != nil
        case .registration: counted.code == "registered"
        case .device: false
        }
    }

    private static func observed(_ counted: CountedVerdict) -> ErrorCode? {
        let prefix = "observed_"
        return counted.code.hasPrefix(prefix) ? ErrorCode(rawValue: String(counted.code.dropFirst(prefix.count))) : nil
    }

    private func request(of counted: CountedVerdict) -> Finding? {
        guard record.enabled else { return refused(.request, .disabled, .unknownApp) }
        if let observed = Self.observed(counted) {
            return record.mode == .enforce ? refused(.request, .underObservation, observed) : nil
        }
        guard let scheme = counted.scheme, scheme < record.signature.minimumScheme else { return nil }
        return refused(.request, .scheme, .unsupportedSigVersion)
    }

    private func registration(of counted: CountedVerdict) -> Finding? {
        guard record.enabled else { return refused(.registration, .disabled, .unknownApp) }
        switch counted.platform {
        case .ios where record.ios == nil, .android where record.android == nil:
            return refused(.registration, .platform, .invalidAttestation)
        default: break
        }
        guard record.registration.approval == .manual else { return nil }
        return Finding(
            stage: .registration, outcome: record.mode == .observe ? .observed : .pending, reason: .approval, code: nil)
    }
}
