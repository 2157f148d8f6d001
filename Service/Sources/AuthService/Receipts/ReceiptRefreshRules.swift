internal import AppAttest
internal import AuthContract
internal import Foundation
internal import Verification

/// The rate at which receipts are exchanged.
public struct ReceiptRefreshPolicy: Sendable, Hashable {
    /// The largest number of requests of this process to Apple in an hour, 1 or more.
    public var requestsPerHour: Int64

    /// A policy. With the default of 360 an hour, at most 8,640 receipts are exchanged a day.
    public init(requestsPerHour: Int64 = 360) { self.requestsPerHour = max(1, requestsPerHour) }
}

/// Decides what follows from Apple's answer: a function of the stored receipt, the answer and the time.
struct ReceiptRefreshRules: Sendable {
    /// When the next receipt is exchanged.
    enum Next: Sendable, Hashable {
        /// At the policy's rate.
        case goOn
        /// At once, because Apple was not asked.
        case withoutPause
        /// After a pause: at least this many seconds, if Apple named a time.
        case backOff(atLeast: Int64?)
    }

    struct Decision: Sendable {
        var change: ReceiptChange
        var next: Next
        /// The new receipt, if the verifier refused it.
        var proof: (@Sendable () -> RefusedProof)?
    }

    static let day: Int64 = 86_400
    /// Seconds for which a due receipt belongs to the process that took it.
    static let lease: Int64 = 900

    let verifier: ReceiptVerifier

    func decide(_ answer: ReceiptAnswer, on due: DueReceipt, at now: UnixTime, jitter: Double) -> Decision {
        let failures = due.evidence.refresh.failures
        switch answer {
        case .receipt(let bytes): return judge(bytes, on: due, at: now, jitter: jitter)
        case .tooEarly: return kept("too_early", until: now + Self.day, now, failures: failures)
        case .noData: return kept("no_data", until: now + 7 * Self.day, now, failures: 0)
        case .noKey: return kept("no_key", until: now + Self.day, now, failures: failures, .withoutPause)
        case .badReceipt:
            return kept("bad_receipt", until: now + Self.afterFailure(failures), now, failures: failures + 1)
        case .unauthorized:
            return kept("unauthorized", until: now + 3600, now, failures: failures, .backOff(atLeast: nil))
        case .tooManyRequests(let seconds):
            return kept("too_many_requests", until: now + 3600, now, failures: failures, .backOff(atLeast: seconds))
        case .unavailable(_, let seconds):
            // Each failure doubles the pause, so that a receipt that makes the server fail does not delay the others.
            let pause = min(600 << Int64(min(failures, 8)), Self.day)
            return kept(
                "unavailable", until: now + pause, now, failures: failures + 1, .backOff(atLeast: seconds))
        }
    }

    /// Verifies the new receipt against the stored key, App ID and environment, before it replaces the stored receipt.
    private func judge(_ bytes: [UInt8], on due: DueReceipt, at now: UnixTime, jitter: Double) -> Decision {
        let failures = due.evidence.refresh.failures
        func refused(_ code: String) -> Decision {
            kept(code, until: now + Self.afterFailure(failures), now, failures: failures + 1)
        }
        guard let expected = due.expectations else { return refused("stored_evidence_unreadable") }
        let fields: ReceiptFields
        do { fields = try verifier.verify(bytes, against: expected, at: now.date).fields } catch {
            var decision = refused(error.code.rawValue)
            let judged = AppAttestEvidence(receipt: bytes, of: due.evidence, at: now)
            decision.proof = {
                RefusedProof(code: error.code.rawValue, step: error.step.rawValue, line: judged.line)
            }
            return decision
        }
        guard fields.kind == .receipt, let metric = fields.riskMetric, let notBefore = fields.notBefore else {
            return refused("not_a_refreshed_receipt")
        }
        let named = UnixTime(Int64(notBefore.timeIntervalSince1970.rounded(.up)))
        // The time that Apple names is about a day ahead. The bound prevents a date in the far future from ending this device's refreshes.
        let next = min(max(named, now + 3600), now + 30 * Self.day) + Int64(jitter * 6 * 3600)
        return Decision(
            change: ReceiptChange(
                replacement: .init(receipt: bytes, riskMetric: metric),
                refresh: ReceiptRefresh(dueAt: next, askedAt: now, outcome: "refreshed")),
            next: .goOn)
    }

    private func kept(
        _ outcome: String, until: UnixTime, _ now: UnixTime, failures: Int, _ next: Next = .goOn
    ) -> Decision {
        let refresh = ReceiptRefresh(dueAt: until, askedAt: now, outcome: outcome, failures: min(failures, 1000))
        return Decision(change: ReceiptChange(refresh: refresh), next: next)
    }

    /// Seconds until the next exchange after a failure that follows `failures` failures in a row: 1 day, 2 days, 4 days…, at most 30.
    private static func afterFailure(_ failures: Int) -> Int64 { min(day << Int64(min(failures, 5)), 30 * day) }
}

extension DueReceipt {
    var attestedAppID: AppleAppID? { AppleAppID(evidence.appID) }

    var environment: AttestEnvironment? { AttestEnvironment(rawValue: evidence.environment) }

    /// The values that every receipt of the device must have; nil: the stored evidence cannot be read.
    var expectations: ReceiptExpectations? {
        guard let app = attestedAppID, let environment, let keyID = KeyID(evidence.keyID) else { return nil }
        return ReceiptExpectations(appIDs: [app], keyID: keyID, clientDataHash: nil, environment: environment)
    }
}
