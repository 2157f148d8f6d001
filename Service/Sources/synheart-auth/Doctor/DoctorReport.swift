import AuthContract
import AuthServer
import StrictJSON

/// The result of one check.
struct CheckResult: Sendable {
    enum State: String, Sendable {
        /// Nothing to do.
        case ok
        /// The checked part works, but needs attention.
        case warn
        /// The checked part does not work, or will soon fail.
        case fail
    }

    let check: String
    let state: State
    let message: String
    /// The remedy; nil if nothing needs to be done.
    let advice: String?

    var json: JSONObject {
        JSONObject([
            ("check", .string(check)), ("state", .string(state.rawValue)), ("message", .string(message)),
            ("advice", advice.map { .string($0) } ?? .null),
        ])
    }
}

/// The results of all checks of `doctor`, in the order in which the checks ran.
struct DoctorReport: Sendable {
    private(set) var findings: [CheckResult] = []
    private var ends: [(name: String, at: UnixTime)] = []

    /// The largest number of listed expiries.
    private static let maximumEnds = 50

    /// The worst state of all results.
    var state: CheckResult.State {
        let states = findings.map(\.state)
        return states.contains(.fail) ? .fail : states.contains(.warn) ? .warn : .ok
    }

    /// The worst state of one check's results; nil: the check has no results.
    func state(of check: String) -> CheckResult.State? {
        let states = findings.filter { $0.check == check }.map(\.state)
        return [.fail, .warn, .ok].first(where: states.contains)
    }

    mutating func ok(_ check: String, _ message: String) { add(check, .ok, message, nil) }

    mutating func warn(_ check: String, _ message: String, do advice: String) { add(check, .warn, message, advice) }

    mutating func fail(_ check: String, _ message: String, do advice: String) { add(check, .fail, message, advice) }

    /// Notes the name of something that expires, and its expiry. `listEnds` lists them.
    mutating func note(_ name: String, ending at: UnixTime) { ends.append((name, at)) }

    /// Adds a line for each noted expiry, earliest first. Beyond the maximum, one line has the number of the others.
    mutating func listEnds() {
        let sorted = ends.sorted { ($0.at, $0.name) < ($1.at, $1.name) }
        for end in sorted.prefix(Self.maximumEnds) { ok("ends", "\(end.at.iso8601)  \(end.name)") }
        let further = sorted.count - Self.maximumEnds
        if further > 0 { ok("ends", "\(further) more end later") }
    }

    /// Warns that a secret cannot be checked: it is not set for this process, but systemd may pass it to the service's unit.
    mutating func warnWithheld(_ key: ConfigurationKey) {
        warn(
            key.rawValue,
            "it cannot be checked as this user: /etc/credstore is root's, and systemd hands it to the unit alone",
            do: "with the unit's credential: systemd-run --wait --pipe --uid=synheart-auth "
                + "-p LoadCredential=\(key.rawValue):synheart-auth.\(key.rawValue) synheart-auth doctor --config FILE")
    }

    private mutating func add(_ check: String, _ state: CheckResult.State, _ message: String, _ advice: String?) {
        findings.append(CheckResult(check: check, state: state, message: message, advice: advice))
    }
}
