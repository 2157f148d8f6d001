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
}
