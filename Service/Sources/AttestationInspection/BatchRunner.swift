internal import StrictJSON

/// Verifies JSON lines in a stream, and gives one JSON line for each, in order.
///
/// Lines end with LF or CR LF; the last needs no end. A line of white space alone is no input and gives no output, but it counts
/// in line numbers; so does a line that is too long, which is skipped without being held. A byte order mark at the start is tolerated.
public struct BatchRunner: Sendable {
    /// Bytes of one line beyond which it is not read: 1 MiB.
    public static let maximumLineLength = 1024 * 1024

    /// Whether every line so far could be read: exit code 0, and otherwise 1.
    public private(set) var everyLineWasReadable = true

    private let options: VerificationOptions
    private var line: [UInt8] = []
    private var lineIsTooLong = false
    private var lineNumber = 0

    /// A runner; throws where the options cannot be used, before anything is read.
    public init(options: VerificationOptions = VerificationOptions()) throws(VerificationOptions.Problem) {
        try options.validate()
        self.options = options
    }

    /// Takes the next bytes of the input, and writes a line for each that ends in them, without its end.
    public mutating func process(
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

    /// Takes the end of the input: the last line may lack its end.
    public mutating func finish(write: (String) throws -> Void) rethrows {
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

    /// The result of one line; nil where it cannot be read.
    static func output(for line: [UInt8], options: VerificationOptions) -> JSONValue? {
        guard let value = try? JSONValue(parsing: line, limits: .init(bytes: maximumLineLength, depth: 32)),
            let fields = try? JSONFields(value), let name = try? fields.string("format"),
            let format = AttestationFormats.named(name),
            let verdict = try? format.verify(fields, options: options)
        else { return nil }
        return verdict.json(name: value.object?["name"]?.string, format: name)
    }
}

extension Verdict {
    /// The line of output.
    func json(name: String?, format: String) -> JSONValue {
        [
            "name": name.map { .string($0) } ?? .null, "format": .string(format),
            "outcome": .string(outcome.rawValue), "code": code.map { .string($0) } ?? .null,
            "step": step.map { .string($0) } ?? .null, "unchecked": .array(unchecked.map { .string($0) }),
            "facts": .object(facts),
        ]
    }
}
