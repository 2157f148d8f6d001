internal import StrictJSON
package import Verification

/// Verifies a stream of JSON lines, and writes one JSON line for each, in order.
///
/// Lines end with LF or CR LF. The last line needs no end. A line of white space gives no output, but counts in line numbers. The
/// rest of a line that is too long is skipped and not kept in memory, and the result of the line is `UNREADABLE`. A byte order
/// mark at the start is ignored.
package struct BatchRunner: Sendable {
    /// The largest size of a line: 1 MiB.
    package static let maximumLineLength = 1024 * 1024

    /// Whether every line so far could be read. If so, the exit code is 0, otherwise 1.
    package private(set) var everyLineWasReadable = true

    private let options: VerificationOptions
    private var line: [UInt8] = []
    private var lineIsTooLong = false
    private var lineNumber = 0

    /// A runner. Throws if the roots in the options cannot be used, before anything is read.
    package init(options: VerificationOptions = VerificationOptions()) throws(VerificationOptions.Problem) {
        try options.validate()
        self.options = options
    }

    /// Processes the next bytes of the input, and writes a result for each line that ends in them.
    package mutating func process(
        _ chunk: some Sequence<UInt8>, write: (String) throws -> Void
    ) rethrows {
        for byte in chunk {
            guard byte != UInt8(ascii: "\n") else {
                try endLine(write)
                continue
            }
            guard line.count < Self.maximumLineLength else {
                lineIsTooLong = true
                continue
            }
            line.append(byte)
        }
    }

    /// Processes the end of the input. The last line may lack its line end.
    package mutating func finish(write: (String) throws -> Void) rethrows {
        guard !line.isEmpty || lineIsTooLong else { return }
        try endLine(write)
    }

    private mutating func endLine(_ write: (String) throws -> Void) rethrows {
        lineNumber += 1
        defer {
            line.removeAll(keepingCapacity: line.capacity <= 65536)
            lineIsTooLong = false
        }
        if lineNumber == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        if lineIsTooLong {
            try writeUnreadable(write)
        } else if !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) {
            guard let output = Self.output(for: line, options: options) else { return try writeUnreadable(write) }
            try write(output.text())
        }
    }

    private mutating func writeUnreadable(_ write: (String) throws -> Void) rethrows {
        everyLineWasReadable = false
        let output: JSONValue = ["line": .integer(lineNumber), "outcome": .null, "code": "UNREADABLE"]
        try write(output.text())
    }

    /// The result of one line; nil if it cannot be read.
    static func output(for line: [UInt8], options: VerificationOptions) -> JSONValue? {
        guard let value = try? JSONValue(parsing: line, limits: .init(bytes: maximumLineLength, depth: 32)),
            let fields = try? JSONFields(value), let format: EvidenceFormat = try? fields.choice("format"),
            let verdict = try? format.verify(fields, options: options)
        else { return nil }
        return verdict.json(name: value.object?["name"]?.string, format: format)
    }
}

extension Verdict {
    /// The verdict as a line of output.
    func json(name: String?, format: EvidenceFormat) -> JSONValue {
        [
            "name": name.map { .string($0) } ?? .null, "format": .string(format.rawValue),
            "outcome": .string(outcome.rawValue), "code": code.map { .string($0) } ?? .null,
            "step": step.map { .string($0) } ?? .null, "unchecked": .array(unchecked.map { .string($0) }),
            "facts": .object(facts),
        ]
    }
}
