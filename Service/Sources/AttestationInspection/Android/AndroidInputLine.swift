internal import Bytes
internal import Foundation
internal import StrictJSON

/// Members of an input line that both Android formats read.
enum AndroidInputLine {
    /// A time. Any other text makes the line unreadable.
    static func time(_ name: String, in line: JSONFields) throws(JSONError) -> Date? {
        try line.optionalParsed(name) { text in
            guard let time = InputTime.parse(text) else { throw JSONError(.wrongType, path: line.pathOf(name)) }
            return time
        }
    }

    /// Octets in hexadecimal. Any other text makes the line unreadable.
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
    /// An option that cannot be used. Nothing was verified, and the object is not at fault.
    static func unusable(_ option: String, code: String, _ error: any Error) -> Verdict {
        Verdict(
            .couldNotCheck, code: code, step: option, checks: [Check(option, .failed, detail: "\(error)")])
    }

    /// A line without its object.
    static func missing(_ member: String) -> Verdict {
        Verdict(
            .couldNotCheck, code: "OBJECT_MISSING", step: member, unchecked: [member],
            checks: [Check(member, .unchecked, detail: "not given")])
    }
}
