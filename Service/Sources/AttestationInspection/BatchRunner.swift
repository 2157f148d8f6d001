internal import StrictJSON
package import Verification

/// Verifies a stream of JSON lines, and writes one JSON line for each, in order.
///
/// Lines end with LF or CR LF. The last line needs no end. A line of white space gives no output, but counts in line numbers. The
/// rest of a line that is too long is skipped and not kept in memory, and the result of the line is `UNREADABLE`. A byte order
/// mark at the start is ignored.
package struct BatchRunner {
    /// The largest size of a line: 1 MiB.
    package static let maximumLineLength = 1024 * 1024

    /// Whether every line so far could be read. If so, the exit code is 0, otherwise 1.
    package private(set) var everyLineWasReadable = true

    private let options: VerificationOptions
    private let explain: (String) -> Void
    private var unreadableLines = 0
    private var line: [UInt8] = []
    private var lineIsTooLong = false
    private var lineNumber = 0

    /// A runner. Throws before anything is read if the options' roots, list of revoked keys or response keys cannot be used.
    ///
    /// - Parameter explain: called with a sentence for each of the first lines that cannot be read.
    package init(
        options: VerificationOptions = VerificationOptions(), explain: @escaping (String) -> Void = { _ in }
    ) throws(VerificationOptions.Problem) {
        try options.validate()
        self.options = options
        self.explain = explain
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
        guard !lineIsTooLong else {
            return try writeUnreadable("is longer than \(Self.maximumLineLength) bytes", write)
        }
        guard !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) else { return }
        let output: JSONValue
        do {
            output = try Self.output(for: line, options: options)
        } catch {
            return try writeUnreadable((error as? JSONError)?.description ?? "cannot be read", write)
        }
        try write(output.text())
    }

    /// The number of unreadable lines that are explained. It is bounded, because in a file of another kind every line is
    /// unreadable.
    package static let explainedLines = 20

    private mutating func writeUnreadable(_ reason: String, _ write: (String) throws -> Void) rethrows {
        everyLineWasReadable = false
        unreadableLines += 1
        if unreadableLines <= Self.explainedLines {
            explain("line \(lineNumber): \(reason)")
        } else if unreadableLines == Self.explainedLines + 1 {
            explain("more lines cannot be read; the output names them")
        }
        let output: JSONValue = ["line": .integer(lineNumber), "outcome": .null, "code": "UNREADABLE"]
        try write(output.text())
    }

    /// The result of one line. Throws if it cannot be read.
    static func output(for line: [UInt8], options: VerificationOptions) throws -> JSONValue {
        let value = try JSONValue(parsing: line, limits: .init(bytes: maximumLineLength, depth: 32))
        let fields = try JSONFields(value)
        let format: EvidenceFormat = try fields.choice("format")
        let verdict = try format.verify(fields, options: options)
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
