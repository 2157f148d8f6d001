/// The checks of one object, written down as they are made: the first that fails ends them.
struct CheckList {
    private(set) var checks: [Verdict.Check] = []
    /// The checks that are impossible, whether they were reached or not.
    let unchecked: [String]

    /// A list in which the checks of these names are impossible; nil names none.
    init(unchecked: [String?]) {
        self.unchecked = unchecked.compactMap(\.self)
    }

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

    /// Writes down that one of the impossible checks would be made here.
    mutating func skip(_ name: String, _ detail: String) {
        checks.append(Verdict.Check(name, .unchecked, detail: detail))
    }
}
