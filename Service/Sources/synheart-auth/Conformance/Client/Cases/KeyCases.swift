import AuthContract
import Foundation
import StrictJSON

extension ClientCase {
    /// Rotations that meet a fault, and rotations that the service demands.
    static let rotations: [ClientCase] = [
        repaired("rotation-lost", "a client that is killed after its rotation was sent sends the same key again", true),
        repaired(
            "rotation-unsent", "a client that is killed before its rotation arrives sends the same key again", false),
        .init(
            "rotation-unavailable", "Retry",
            "a rotation is sent again with the same key, after the time of Retry-After",
            [.register, .rotate, .get], faults: [.rotate: [.refused(.serviceUnavailable, retryAfter: 2)]]
        ) { trace in
            try trace.done(1)
            try trace.answered(2)
            let sent = try trace.came(.rotate, 2)
            try trace.waited(2, after: sent[0], before: sent[1])
            try trace.signed(try trace.came(.get, 1)[0], by: trace.rotatedKeys.first)
        },
        .init(
            "rotation-refused", "Errors", "after ROTATION_FAILED the client keeps the old key, and asks for its status",
            [.register, .rotate, .get], faults: [.rotate: [.refused(.rotationFailed)]]
        ) { trace in
            try trace.failed(1, .rotationFailed)
            try trace.came(.status, atLeast: 1)
            try trace.answered(2)
            try trace.signed(try trace.came(.get, 1)[0], by: trace.registeredKeys.first)
        },
        .init(
            "rotation-expired", "Errors", "KEY_EXPIRED as the answer to a rotation leaves the reset to the app",
            [.register, .rotate, .get], faults: [.rotate: [.refused(.keyExpired)]]
        ) { trace in
            try trace.failed(1, .keyExpired)
            try trace.answered(2)
            try trace.came(.register, 1)
        },
        demanded("demanded", "X-Synheart-Rotate without a reason makes the client rotate as scheduled", nil),
        demanded(
            "demanded-compromise", "X-Synheart-Rotate after a compromise makes the client rotate for that", .compromise),
    ]

    /// A case in which the client is killed during a rotation.
    private static func repaired(_ id: String, _ sentence: String, _ afterService: Bool) -> ClientCase {
        .init(
            id, "Answers that are lost", sentence, [.register, .rotate], [.register, .maintain, .get],
            faults: [.rotate: [.killed(afterService: afterService)]]
        ) { trace in
            try trace.done(0)
            for step in 0..<2 { try trace.done(step, launch: 1) }
            try trace.answered(2, launch: 1)
            try trace.came(.rotate, atLeast: 2)
            try trace.require(trace.rotatedKeys.count == 1, "the client made another key")
            try trace.signed(try trace.came(.get, 1)[0], by: trace.rotatedKeys.first)
        }
    }

    /// A case in which the service demands a rotation within an hour.
    private static func demanded(_ id: String, _ sentence: String, _ reason: RotationReason?) -> ClientCase {
        let demand = Fault.changed { answer in
            let by = Int64(Date().timeIntervalSince1970) + 3600
            answer.set(HeaderName.rotate, "required; by=\(by)" + (reason.map { "; reason=\($0.rawValue)" } ?? ""))
        }
        return .init(
            id, "Must rotate", sentence, [.register, .token, .maintain, .get], faults: [.token: [demand]], newKeys: 1
        ) { trace in
            for step in 0..<3 { try trace.done(step) }
            try trace.answered(3)
            let sent = try trace.came(.rotate, 1)
            let said = sent[0].json["reason"]?.string ?? RotationReason.scheduled.rawValue
            try trace.require(said == (reason ?? .scheduled).rawValue, "the rotation says \(said)")
            try trace.signed(try trace.came(.get, 1)[0], by: trace.rotatedKeys.first)
        }
    }
}
