/// The steps of a verification as they are made. Verifiers and audits run the same list of steps through it.
struct StepLog {
    private(set) var steps: [AuditedStep] = []

    /// Makes a step. The first that throws ends the verification.
    mutating func check<Value>(
        _ step: AppAttestError.Step, _ body: @autoclosure () throws(AppAttestError) -> Value
    ) throws(AppAttestError) -> Value {
        do {
            let value = try body()
            steps.append(AuditedStep(step: step, outcome: .passed, detail: nil))
            return value
        } catch {
            steps.append(AuditedStep(step: step, outcome: .failed, detail: error.description))
            throw error
        }
    }

    /// Writes down that a step cannot be made, or not all of it.
    mutating func skip(_ step: AppAttestError.Step, _ detail: String) {
        steps.append(AuditedStep(step: step, outcome: .unchecked, detail: detail))
    }
}
