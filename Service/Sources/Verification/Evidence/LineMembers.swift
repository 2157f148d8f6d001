internal import Bytes
internal import Foundation
internal import StrictJSON

/// Reads members of an input line. A text that does not have the form of its member makes the line unreadable.
extension JSONFields {
    /// A time.
    func optionalTime(_ name: String) throws(JSONError) -> Date? {
        try optionalParsed(name) { text in try InputTime.parse(text).orThrow() }
    }

    /// Octets in hexadecimal.
    func optionalHexadecimal(_ name: String) throws(JSONError) -> [UInt8]? {
        try optionalParsed(name) { text in try Hexadecimal.decode(text).orThrow() }
    }

    /// Octets in standard base64 or base64url.
    func optionalBase64(_ name: String) throws(JSONError) -> [UInt8]? {
        try optionalParsed(name) { text in try Base64.decodeEitherForm(text).orThrow() }
    }
}

extension Base64 {
    /// The octets of a text in standard base64 or base64url, with the whole padding or without padding; nil if the text is neither.
    static func decodeEitherForm(_ text: String) -> [UInt8]? {
        let characters = normalized(text)
        let padding = text.utf8.count - characters.utf8.count
        guard padding == 0 || padding <= 2 && text.utf8.count.isMultiple(of: 4) else { return nil }
        return url.decode(characters)
    }
}

/// Thrown by the parser of a member. `JSONFields` turns it into an error that names the member.
private struct Unreadable: Error {}

extension Optional {
    func orThrow() throws -> Wrapped {
        guard let self else { throw Unreadable() }
        return self
    }
}

extension JSONObject {
    /// An input line that has only its format.
    init(_ format: EvidenceFormat) { self.init([("format", .string(format.rawValue))]) }

    /// Writes a time, to the second.
    mutating func set(_ member: String, _ time: Date?) {
        self[member] = time.map { .string(CivilTime($0).iso8601) }
    }

    /// Writes octets in base64.
    mutating func set(_ member: String, base64 octets: (some Collection<UInt8>)?) {
        self[member] = octets.map { .string(Base64.standard.encode($0)) }
    }
}
