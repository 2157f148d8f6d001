import ArgumentParser
import StrictJSON

/// A command's output: a table for people, JSON for programs.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON, for programs.")
    var json = false

    /// Prints one object: its members as lines, or as JSON.
    func show(_ object: JSONObject) throws(CommandFailure) {
        guard !json else { return try StandardOutput.print(json: JSONValue.object(object).text(.pretty)) }
        let width = object.members.map(\.name.withoutControls.count).max() ?? 0
        let lines = object.members.map { member in
            "\(member.name.withoutControls.padded(to: width))  \(Self.text(member.value))"
        }
        guard !lines.isEmpty else { return }
        try StandardOutput.print(lines.joined(separator: "\n"))
    }

    /// Prints several objects: as a table with these columns, or as a JSON array with all members.
    func list(_ objects: [JSONObject], columns: [String], empty: String) throws(CommandFailure) {
        guard !json else {
            return try StandardOutput.print(json: JSONValue.array(objects.map { .object($0) }).text(.pretty))
        }
        guard !objects.isEmpty else { return try StandardOutput.print(empty) }
        let rows =
            [columns.map { $0.uppercased() }]
            + objects.map { object in
                columns.map { Self.text(object[$0] ?? .null) }
            }
        let widths = columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ").trimmingTrailingSpaces
        }
        try StandardOutput.print(lines.joined(separator: "\n"))
    }

    /// Prints one object of an endless series on one line: the members that `columns` names, or all members as JSON.
    func line(_ object: JSONObject, columns: [String]) throws(CommandFailure) {
        guard !json else { return try StandardOutput.print(json: JSONValue.object(object).text()) }
        try StandardOutput.print(columns.map { Self.text(object[$0] ?? .null) }.joined(separator: "  "))
    }

    /// Prints that something was done.
    func done(_ sentence: String, _ object: JSONObject) throws(CommandFailure) {
        try Self.reporting(sentence) { () throws(CommandFailure) in
            guard !json else { return try show(object) }
            try StandardOutput.print(sentence.withoutControls)
        }
    }

    /// Prints the result of something that was done. If it cannot be printed, the error says what was done.
    static func reporting(_ sentence: String, _ print: () throws(CommandFailure) -> Void) throws(CommandFailure) {
        do throws(CommandFailure) { try print() } catch {
            throw CommandFailure(error.kind, "it is done (\(sentence)), but the command \(error.description)")
        }
    }

    /// The text of a cell. It may come from a device or an untrusted file, so escape sequences must not reach the terminal.
    private static func text(_ value: JSONValue) -> String { plain(value).withoutControls }

    private static func plain(_ value: JSONValue) -> String {
        switch value {
        case .null: "-"
        case .string(let text): text
        case .array(let values) where values.allSatisfy({ $0.object == nil }):
            values.isEmpty ? "-" : values.map(plain).joined(separator: ", ")
        default: value.text()
        }
    }
}

extension String {
    /// The text, padded with spaces.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    fileprivate var trimmingTrailingSpaces: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
