/// The checks of one object, written down as they are made: the first that fails ends them.
struct CheckList {
    private(set) var checks: [Verdict.Check] = []
    private(set) var unchecked: [String] = []

    /// Makes a check. The error that it throws carries its own name.
    mutating func check<Value, Failure: Error>(
        _ name: String, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        do {
            let value = try body()
            checks.append(Verdict.Check(name, .passed))
            return value
        } catch {
            checks.append(Verdict.Check(name, .failed, detail: "\(error)"))
            throw error
        }
    }

    /// Writes down a check that could not be made.
    mutating func skip(_ name: String, _ detail: String) {
        unchecked.append(name)
        checks.append(Verdict.Check(name, .unchecked, detail: detail))
    }
}
