internal import Bytes
internal import Foundation
internal import StrictJSON

/// What the two Android formats read from an input line and from the options beside it.
enum AndroidInputLine {
    /// A time. A text that is none makes the line unreadable.
    static func time(_ name: String, in line: JSONFields) throws(JSONError) -> Date? {
        try line.optionalParsed(name) { text in
            guard let time = InputTime.parse(text) else { throw JSONError(.wrongType, path: line.pathOf(name)) }
            return time
        }
    }

    /// Octets in hexadecimal. A text that is none makes the line unreadable.
    static func hexadecimal(_ name: String, in line: JSONFields) throws(JSONError) -> [UInt8]? {
        try line.optionalParsed(name) { text in
            guard let octets = Hexadecimal.decode(text) else {
                throw JSONError(.wrongType, path: line.pathOf(name))
            }
            return octets
        }
    }
}

extension Verdict {
    /// An option that cannot be understood: nothing was verified, and nothing is the object's fault.
    static func unusable(_ option: String, code: String, _ error: any Error) -> Verdict {
        Verdict(
            .couldNotCheck, code: code, step: option, checks: [Check(option, .failed, detail: "\(error)")])
    }

    /// A line without the object itself.
    static func missing(_ member: String) -> Verdict {
        Verdict(
            .couldNotCheck, code: "OBJECT_MISSING", step: member, unchecked: [member],
            checks: [Check(member, .unchecked, detail: "not given")])
    }

    /// The checks of a verification whose steps are in order: those before the one that failed passed, those after it
    /// were not reached.
    static func checks<Step: RawRepresentable<String> & Hashable>(
        _ steps: [Step], failed: (step: Step, reason: String)?, unchecked: [Step: String]
    ) -> [Check] {
        var checks: [Check] = []
        for step in steps {
            if let failed, step == failed.step {
                return checks + [Check(step.rawValue, .failed, detail: failed.reason)]
            }
            checks.append(
                unchecked[step].map { Check(step.rawValue, .unchecked, detail: $0) } ?? Check(step.rawValue, .passed))
        }
        return checks
    }
}
