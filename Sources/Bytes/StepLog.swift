/// Records the steps of a verification. A verifier and the audit that reports each step both use it, so that they run the same steps.
package struct StepLog<Failure: StepError> {
    /// The steps so far, in their order. No step follows one that failed.
    package private(set) var steps: [LoggedStep<Failure.Step>] = []

    /// An empty log.
    package init() {}

    /// Runs a step. The first step that throws ends the verification.
    package mutating func check<Value>(
        _ step: Failure.Step, _ body: @autoclosure () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        do {
            let value = try body()
            pass(step)
            return value
        } catch {
            fail(step, error)
            throw error
        }
    }

    /// Logs that a step has passed.
    package mutating func pass(_ step: Failure.Step) {
        steps.append(LoggedStep(step: step, outcome: .passed, detail: nil))
    }

    /// Logs that a step has failed.
    package mutating func fail(_ step: Failure.Step, _ error: Failure) {
        steps.append(LoggedStep(step: step, outcome: .failed, detail: error.reason))
    }

    /// Logs that a step, or a part of it, cannot be run.
    package mutating func skip(_ step: Failure.Step, _ detail: String) {
        steps.append(LoggedStep(step: step, outcome: .unchecked, detail: detail))
    }
}

/// A refusal at a step of a verification.
package protocol StepError: Error {
    associatedtype Step: Sendable
    /// The reason for the refusal.
    var reason: String { get }
}

/// One step of a ``StepLog``.
package struct LoggedStep<Step: Sendable>: Sendable {
    /// The outcome of a step.
    package enum Outcome: String, Sendable {
        case passed, failed, unchecked
    }

    /// The step.
    package let step: Step
    /// The outcome of the step.
    package let outcome: Outcome
    /// The failure, or why the step is unchecked; nil if the step passed.
    package let detail: String?
}
