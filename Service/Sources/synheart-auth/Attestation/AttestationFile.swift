import AttestationInspection
import AuthContract
import Foundation
import StrictJSON
import Verification

/// An object in a file: binary, or in its usual text form.
struct AttestationFile {
    /// The bytes of the object.
    let bytes: [UInt8]
    /// The file as text; empty if it is binary.
    private let text: String

    init(_ path: String) throws {
        let read = try InputFile.bytes(path, maximum: 1 << 20)
        let file = read.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(read.dropFirst(3)) : read
        text =
            file.allSatisfy { $0 < 0x80 && ($0 >= 0x20 || [0x09, 0x0A, 0x0D].contains($0)) }
            ? String(decoding: file, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) : ""
        let joined = text.filter { !$0.isWhitespace }
        bytes = text.isEmpty ? file : Base64.standard.decode(joined) ?? Base64.url.decode(joined) ?? file
    }

    /// The format of the bytes; nil: it is not recognized.
    var format: EvidenceFormat? { ObjectTree.inspect(bytes)?.format }

    /// The members of an input line that carry the object.
    func members(of format: EvidenceFormat) -> [(String, JSONValue)] {
        let isText = format.policy != .ios
        return [(format.objectMember, .string(isText ? text : Base64.standard.encode(bytes)))]
    }
}
