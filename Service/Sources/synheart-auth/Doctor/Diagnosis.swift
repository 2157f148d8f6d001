import StrictJSON

/// What one look found.
struct Finding: Sendable {
    enum State: String, Sendable {
        /// As it must be.
        case ok
        /// It works, but somebody should know.
        case warn
        /// It does not work, or will not.
        case fail
    }

    let check: String
    let state: State
    let message: String
    /// What to do; nil where there is nothing.
    let advice: String?

    var json: JSONObject {
        JSONObject([
            ("check", .string(check)), ("state", .string(state.rawValue)), ("message", .string(message)),
            ("advice", advice.map { .string($0) } ?? .null),
        ])
    }
}

/// Everything that was found, in order.
struct Diagnosis: Sendable {
    private(set) var findings: [Finding] = []

    /// The worst of it.
    var state: Finding.State {
        let states = findings.map(\.state)
        return states.contains(.fail) ? .fail : states.contains(.warn) ? .warn : .ok
    }

    /// The worst of one check.
    func state(of check: String) -> Finding.State? {
        let states = findings.filter { $0.check == check }.map(\.state)
        return [.fail, .warn, .ok].first(where: states.contains)
    }

    mutating func ok(_ check: String, _ message: String) { add(check, .ok, message, nil) }

    mutating func warn(_ check: String, _ message: String, do advice: String) { add(check, .warn, message, advice) }

    mutating func fail(_ check: String, _ message: String, do advice: String) { add(check, .fail, message, advice) }

    private mutating func add(_ check: String, _ state: Finding.State, _ message: String, _ advice: String?) {
        findings.append(Finding(check: check, state: state, message: message, advice: advice))
    }
}
